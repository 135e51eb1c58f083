"""The coordinator model: scenarios, rules, versions, laws."""
