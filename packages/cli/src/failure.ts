/**
 * The failure of a command: a message, details, and an exit code for scripts. Every error that the caller can correct is a
 * Failure. Any other error is a bug of this program and is printed with its stack.
 */

export const EXIT = {
  /** The service responded with an error. */
  apiError: 1,
  /** The command or its input is wrong. The command stopped before further requests. */
  usage: 2,
  /** `apply --dry-run` found changes. Programs for continuous integration expect this code. */
  wouldChange: 2,
  /** The service is not reachable or temporarily unavailable. */
  unreachable: 3,
  /** The verdict of `check` is not VALID, or `status` found no validator or one that is not ready. */
  negative: 4,
} as const
export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

export class Failure extends Error {
  override readonly name = 'Failure'
  readonly exitCode: ExitCode
  /** The code of the API's error, if any. */
  readonly code: string | undefined
  readonly details: readonly string[]

  constructor(exitCode: ExitCode, message: string, more: { code?: string; details?: readonly string[] } = {}) {
    super(message)
    this.exitCode = exitCode
    this.code = more.code
    this.details = more.details ?? []
  }
}
