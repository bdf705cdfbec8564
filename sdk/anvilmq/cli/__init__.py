"""The command `anvilmq`: one file a noun, and what they share. It does nothing that a program could not do too.

The files of the nouns hold plain functions; main.py alone makes the command line of them. What costs time to import
(gRPC, the messages, asyncio, rich) is imported where it is used: `--help` needs none of it.
"""
