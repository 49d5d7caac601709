/**
 * The features that this version of the validator has in addition to those of the first version. Validators pass them to functions of the
 * database, so that a validator without a feature does not decide checks of licenses that need the feature. Heartbeats also contain the
 * features.
 */

export const FEATURES: readonly string[] = ['terms', 'boundKeys', 'leases']
