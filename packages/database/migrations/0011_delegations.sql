-- The delegations of each signing key: for the public key of each validator, the signed text and its end. The column is in the change feed,
-- so a validator receives its delegations as it receives public keys. `delegated_at` is the time of the last signing of all delegations.
alter table signing_keys add column delegations jsonb not null default '{}', add column delegated_at timestamptz;
-- Whether responses of this organization can be signed.
alter table organizations add column signs_answers boolean not null default true;
