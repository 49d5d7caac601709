import { Command } from 'commander'

import { openSession, type RunContext, type Session } from './session.ts'

/** A command of the program, whose subcommands open their sessions in the same context. */
export class CliCommand extends Command {
  readonly #context: RunContext

  constructor(context: RunContext, name?: string) {
    super(name)
    this.#context = context
  }

  override createCommand(name?: string): CliCommand {
    return new CliCommand(this.#context, name)
  }

  /**
   * Sets the function that runs the command. It receives a session, the flags of the command, and its arguments. Each value of the last
   * argument of a command with `<name...>` is an argument.
   */
  run(body: (session: Session, flags: unknown, ...args: string[]) => Promise<void>): this {
    return this.action((...given: (string | string[])[]) => {
      const args = given.slice(0, this.registeredArguments.length).flat()
      return body(openSession(this.#context, this), this.opts(), ...args)
    })
  }
}
