/**
 * The features that the first version of the validator lacked. Postgres rejects a validator that lacks a feature which a license uses, and
 * management reads the features from the heartbeats.
 */

export const FEATURES: readonly string[] = ['terms', 'boundKeys', 'leases', 'grace', 'switches']
