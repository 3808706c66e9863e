"""The records of all collectives: schedule, contract and sizes of each."""
