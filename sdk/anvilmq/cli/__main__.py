"""`python -m anvilmq.cli` is the command `anvilmq`."""

from anvilmq.cli.main import main

if __name__ == "__main__":
    main()
