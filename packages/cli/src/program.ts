/**
 * Creates the tree of commands and runs one command. `run` takes arguments and a context and returns the exit code, so that tests can run
 * the program without a child process.
 */

import tab from '@bomb.sh/tab/commander'
import { VERSION } from '@keyward/contract/version'
import { type Command, CommanderError } from 'commander'

import { asFailure, ValidationFailure } from './api.ts'
import { CliCommand } from './command.ts'
import { addApiKeyCommands } from './commands/api-keys.ts'
import { addCheckCommand, NegativeResult } from './commands/check.ts'
import { addConfigurationCommands } from './commands/configuration/commands.ts'
import { addConnectionCommands } from './commands/connections.ts'
import { addCustomerCommands } from './commands/customers.ts'
import { addEventCommands } from './commands/events.ts'
import { addKeyCommands } from './commands/keys.ts'
import { addLicenseJobCommands } from './commands/license-jobs.ts'
import { addLicenseCommands } from './commands/licenses.ts'
import { addMachineCommands } from './commands/machines.ts'
import { addMailCommands } from './commands/mails.ts'
import { addMemberCommands } from './commands/members.ts'
import { addOrderCommands } from './commands/orders.ts'
import { addOrganizationCommands } from './commands/organizations.ts'
import { addProductCommands } from './commands/products.ts'
import { addActivityCommands } from './commands/records/activity.ts'
import { addAuditLogCommand } from './commands/records/audit-log.ts'
import { addUsageCommand } from './commands/records/usage.ts'
import { addRuleCommands } from './commands/rules.ts'
import { addSearchCommand } from './commands/search.ts'
import { addSetCommands } from './commands/sets.ts'
import { addStatusCommand } from './commands/status.ts'
import { addTemplateCommands } from './commands/templates.ts'
import { addTokenCommands } from './commands/tokens.ts'
import { addWhoamiCommand } from './commands/whoami.ts'
import { EXIT, Failure } from './failure.ts'
import { flagName } from './flag-names.ts'
import { reportFailure } from './output.ts'
import type { RunContext } from './session.ts'

const AFTERWORD = `
Flags set the address and the credentials. The next sources are KEYWARD_URL, KEYWARD_TOKEN and KEYWARD_OPERATOR_TOKEN, and finally
.keyward/demo.json, which "npm start" and "npx keyward" write. Requests to other machines contain the token, so they
require https or --allow-http (KEYWARD_ALLOW_HTTP=1).

Exit codes: 0 success, 1 error of the service, 2 wrong usage or changes that "apply --dry-run" found, 3 service not
reachable, 4 rejected check or validators that are not ready.

Completion: put packages/cli/bin on the PATH and run  source <(keyward complete bash)  or zsh, fish, powershell.`

function createProgram(context: RunContext): CliCommand {
  const program = new CliCommand(context, 'keyward')
    .description('manage Keyward from a terminal')
    .version(VERSION, '--version', 'print the version')
    .option('--url <address>', 'base URL of the service')
    .option('--token <secret>', 'management token or personal access token')
    .option('--operator-token <secret>', 'operator token, for organizations and validators')
    .option('--allow-http', 'send the token over plain http to another machine')
    .option('--json', 'print one JSON value instead of text', false)
    .option('--get <field>', 'print one field of the result, such as id')
    .addHelpText('after', AFTERWORD)
    .showHelpAfterError('(use --help to list commands and options)')
    .exitOverride()
    .configureOutput({
      writeOut: context.streams.out,
      writeErr: context.streams.err,
    })
  addOrganizationCommands(program)
  addTokenCommands(program)
  addApiKeyCommands(program)
  addMemberCommands(program)
  addProductCommands(program)
  addTemplateCommands(program)
  addOrderCommands(program)
  addConnectionCommands(program)
  addCustomerCommands(program)
  addMailCommands(program)
  addLicenseCommands(program)
  addLicenseJobCommands(program)
  addMachineCommands(program)
  addRuleCommands(program)
  addSetCommands(program)
  addConfigurationCommands(program)
  addSearchCommand(program)
  addCheckCommand(program)
  addActivityCommands(program)
  addUsageCommand(program)
  addAuditLogCommand(program)
  addEventCommands(program)
  addWhoamiCommand(program)
  addStatusCommand(program)
  addKeyCommands(program)
  tab(program)
  return program
}

/** Runs a command and returns its exit code. `args` does not include the name of the program. Throws only for bugs of this program. */
export async function run(args: readonly string[], context: RunContext): Promise<number> {
  const program = createProgram(context)
  let running: Command = program
  program.hook('preAction', (_, command) => {
    running = command
  })
  try {
    await program.parseAsync(args, { from: 'user' })
    return 0
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT.usage
    const failure = inWordsOf(running, asFailure(error))
    if (!(failure instanceof Failure)) throw error
    if (!(failure instanceof NegativeResult)) reportFailure(context.streams, args.includes('--json'), failure)
    return failure.exitCode
  }
}

/**
 * Returns a validation failure with flags and arguments of the command in place of fields of the API. Returns any other error unchanged.
 */
function inWordsOf(command: Command, error: unknown): unknown {
  if (!(error instanceof ValidationFailure)) return error
  return new ValidationFailure(error.code ?? '', error.errors, (pointer) => flagName(command, pointer))
}
