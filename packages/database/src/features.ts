/**
 * What this version of the validator implements beyond the first one. Functions of the database receive it, so that a validator
 * of an earlier version does not decide checks of licenses that need more. Heartbeats contain it.
 */

export const FEATURES: readonly string[] = ['terms', 'boundKeys', 'leases']
