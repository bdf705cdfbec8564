"""`python -m anvilmq_broker.app` is `anvilmq-broker`."""

from anvilmq_broker.app.main import main

main()
