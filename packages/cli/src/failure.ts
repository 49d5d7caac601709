/**
 * How a command fails: one sentence, details below it, and an exit code that a script can go by. Everything that a
 * caller can do something about is a Failure; anything else is a mistake in this program and keeps its stack.
 */

export const EXIT = {
  /** The service said no: a problem with its code. */
  refused: 1,
  /** The command or its input is wrong; nothing was sent, or nothing more. */
  usage: 2,
  /** The service could not be reached, or cannot answer right now. */
  unreachable: 3,
  /** `check`: the verdict is not VALID. `status`: a validator is not ready, behind, or there is none. */
  negative: 4,
} as const
export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

export class Failure extends Error {
  override readonly name = 'Failure'
  readonly exitCode: ExitCode
  /** The stable name of a problem of the API, where there is one. */
  readonly code: string | undefined
  readonly details: readonly string[]

  constructor(exitCode: ExitCode, message: string, more: { code?: string; details?: readonly string[] } = {}) {
    super(message)
    this.exitCode = exitCode
    this.code = more.code
    this.details = more.details ?? []
  }
}
