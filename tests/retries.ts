/**
 * How often a test of whole programs runs again after a failure. The programs give up after seconds, and a shared machine of continuous
 * integration may stall for longer. Everywhere else, a test that fails once has found a defect.
 */
export const RETRIES_OF_PROGRAMS = process.env['CI'] === 'true' ? 1 : 0
