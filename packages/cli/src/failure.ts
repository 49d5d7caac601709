/**
 * The failure of a command: one sentence, details below it, and an exit code for scripts. Every error that the caller can
 * correct is a Failure; any other error is a bug in this program and keeps its stack.
 */

export const EXIT = {
  /** The service responded with a problem. */
  apiError: 1,
  /** The command or its input is wrong. Nothing was sent, or nothing more. */
  usage: 2,
  /** The service could not be reached, or is unavailable now. */
  unreachable: 3,
  /** `check`: the verdict is not VALID. `status`: not every validator is ready, or there is none. */
  negative: 4,
} as const
export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

export class Failure extends Error {
  override readonly name = 'Failure'
  readonly exitCode: ExitCode
  /** The code of the API's problem, if there is one. */
  readonly code: string | undefined
  readonly details: readonly string[]

  constructor(exitCode: ExitCode, message: string, more: { code?: string; details?: readonly string[] } = {}) {
    super(message)
    this.exitCode = exitCode
    this.code = more.code
    this.details = more.details ?? []
  }
}
