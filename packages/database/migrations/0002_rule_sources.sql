-- Rules of different sources, modes or ends may have the same kind, type, value and scope. Comparisons read the rules of a value through
-- the index access_rules_values.
alter table access_rules drop constraint access_rules_twin;
