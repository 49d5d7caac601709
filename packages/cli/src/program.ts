/**
 * The tree of commands. `run` is the whole program but for the process: it takes arguments and surroundings, and
 * returns the exit code, so that tests run it as a shell would.
 */
import tab from '@bomb.sh/tab/commander'
import { Command, CommanderError } from 'commander'

import { asFailure } from './api.ts'
import { addCheckCommand, Negative } from './commands/check.ts'
import { addKeyCommands } from './commands/keys.ts'
import { addLicenseCommands } from './commands/licenses.ts'
import { addOrganizationCommands } from './commands/organizations.ts'
import { addRuleCommands } from './commands/rules.ts'
import { addStatusCommand } from './commands/status.ts'
import { addTokenCommands } from './commands/tokens.ts'
import { EXIT, Failure } from './failure.ts'
import { reportFailure } from './output.ts'
import { openSession, type Session, type Surroundings } from './session.ts'

const AFTERWORD = `
Address and credentials come from the flags, else from KEYWARD_URL, KEYWARD_TOKEN and OPERATOR_TOKEN, else from
.keyward/demo.json, which "npm start" writes.

Exit codes: 0 done, 1 refused by the service, 2 wrong use, 3 service not reachable, 4 "check" is not VALID or
"status" is not all ready.

Completion: put packages/cli/bin on the PATH, then  source <(keyward complete bash)  or zsh, fish, powershell.`

export function createProgram(surroundings: Surroundings): Command {
  const program = new Command('keyward')
    .description('Keyward from a terminal: licenses, access rules, credentials, validators')
    .option('--url <address>', 'base address of the service')
    .option('--token <secret>', 'management token or personal access token')
    .option('--operator-token <secret>', 'operator token, for organizations and validators')
    .option('--json', 'one JSON value instead of text', false)
    .addHelpText('after', AFTERWORD)
    .showHelpAfterError('(add --help for what there is)')
    .exitOverride()
    .configureOutput({
      writeOut: surroundings.streams.out,
      writeErr: surroundings.streams.err,
    })
  const open = (command: Command): Session => openSession(surroundings, command)
  addOrganizationCommands(program, open)
  addTokenCommands(program, open)
  addLicenseCommands(program, open)
  addRuleCommands(program, open)
  addCheckCommand(program, open)
  addStatusCommand(program, open)
  addKeyCommands(program, open)
  tab(program)
  return program
}

/** `args` without the program's own name. Never throws for what a caller can mend. */
export async function run(args: readonly string[], surroundings: Surroundings): Promise<number> {
  try {
    await createProgram(surroundings).parseAsync(args, { from: 'user' })
    return 0
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT.usage
    const failure = asFailure(error)
    if (!(failure instanceof Failure)) throw error
    if (!(failure instanceof Negative)) reportFailure(surroundings.streams, args.includes('--json'), failure)
    return failure.exitCode
  }
}
