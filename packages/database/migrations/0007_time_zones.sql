-- The time zone in which the days of an organization begin and end, such as Europe/Zurich. Null until a member or the operator sets it.
alter table organizations add column time_zone text;
