/**
 * The features that this version of the validator implements beyond the first version. Validators pass them to
 * functions of the database, so that a validator of an earlier version does not decide checks of licenses that need
 * more. Heartbeats contain them.
 */

export const FEATURES: readonly string[] = ['terms', 'boundKeys', 'leases']
