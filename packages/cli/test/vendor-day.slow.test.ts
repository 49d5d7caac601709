/** Runs all commands of docs/guides/vendor-day.md in order against the real services, and counts them. */

import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

import { createdOrganization } from '@keyward/contract'
import { createTestDatabase, startValidatorProcess, type TestDatabase, type ValidatorProcess } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { openShell, type TestShell } from './run-cli.ts'
import { type RunningService, startProgram } from './services.ts'

const OPERATOR_TOKEN = 'operator-token-of-these-tests-only'
const guide = readFileSync(new URL('../../../docs/guides/vendor-day.md', import.meta.url), 'utf8')

interface Section {
  title: string
  commands: string[]
}

/** The sections of the guide that contain commands. */
const sections: Section[] = guide
  .split('\n## ')
  .slice(1)
  .map((text) => ({
    title: text.split('\n')[0] ?? '',
    commands: [...text.matchAll(/```sh\n([^]*?)```/g)].flatMap(([, block = '']) => block.trim().split('\n')),
  }))
  .filter(({ commands }) => commands.length > 0)

let database: TestDatabase
let management: RunningService
let validator: ValidatorProcess
let shell: TestShell
let apiKey: string
const variables = new Map<string, string>()

beforeAll(async () => {
  database = await createTestDatabase()
  shell = await openShell()
  await shell.write('networks.txt', '198.51.100.0/24 # a network\n192.0.2.7\n')
  const env = { PATH: process.env['PATH'] ?? '', KEYWARD_DATABASE_URL: database.url }
  ;[management, validator] = await Promise.all([
    startProgram('management', { ...env, KEYWARD_OPERATOR_TOKEN: OPERATOR_TOKEN, KEYWARD_MASTER_KEY: 'ab'.repeat(32) }),
    startValidatorProcess(database),
  ])
  shell.env['KEYWARD_URL'] = management.url
  shell.env['KEYWARD_OPERATOR_TOKEN'] = OPERATOR_TOKEN
  const created = createdOrganization
    .required()
    .parse(JSON.parse((await shell.cli('--json', 'org', 'create', 'Acme')).out))
  await shell.cli('org', 'plan', created.id, 'STANDARD')
  shell.env['KEYWARD_TOKEN'] = created.managementToken
  apiKey = created.apiKey
})

afterAll(async () => {
  await Promise.all([management.stop(), validator.stop()])
  await shell.clear()
  await database.drop()
})

/** Splits a command line into words. Supports the shell syntax of the guide: blanks, double quotes and variables. */
function words(line: string): string[] {
  return [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain = '']) =>
    (quoted ?? plain).replace(/^\$(\w+)$/, (_, name: string) => variables.get(name) ?? 'unset'),
  )
}

/** Runs `keyward …` or `NAME=$(keyward …)` and returns its output. */
async function runLine(line: string): Promise<string> {
  const [, name, captured, plain] = /^(?:(\w+)=\$\(keyward (.+)\)|keyward (.+))$/.exec(line) ?? []
  const { code, out, err } = await shell.cli(...words(captured ?? plain ?? ''))
  expect([line, code, err]).toEqual([line, 0, err])
  if (name !== undefined) variables.set(name, out.trim())
  return out
}

async function check(machine: string): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${validator.port}/api/v1/validate`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}` },
    body: JSON.stringify({ licenseKey: variables.get('LICENSE'), fingerprint: machine }),
  })
  return response.text()
}

/** Actions before sections, by the title of the section. */
const BEFORE: Record<string, () => Promise<void>> = {
  // The first machine takes the only slot. The rejection of the second machine raises an alert.
  'Find out why a check is rejected': async () => {
    await expect.poll(() => check('laptop-1')).toContain('"valid":true')
    expect(await check('tower-2')).toContain('TOO_MANY_MACHINES')
  },
  'Look after overused licenses': async () => {
    while (!(await shell.cli('alert', 'list')).out.includes('open')) await sleep(50)
  },
}

/** The expected output of sections. */
const EXPECTED: Record<string, RegExp> = {
  'Find out why a check is rejected': /^VALID: [^]*MACHINE_ACTIVATED/,
  'Ban a country and a network': /KP[^]*Applied by all 1 validators\.[^]*203\.0\.113\.0\/24/,
  'Import a list': /2 rules added/,
  'See how often a rule matches': /198\.51\.100\.0\/24[^]*203\.0\.113\.0\/24/,
  'Unblock one machine': /HWID +laptop-1[^]*Deleted 1 rule\./,
  'Free a slot': /^MACHINE ID[^]*\nlaptop-1 [^]*Released the slot of laptop-1\./,
  'Suspend, renew and replace': /suspended[^]*active[^]*revoked/,
  'Hand out an offline file': /Wrote .*ada\.lic\./,
  'See who changed what': /license\.created|license\.revoked/,
  'See the checks of the last week': /^START +CHECKS[^]*START +CODE +CHECKS/,
  'Look after overused licenses': /Acknowledged the alert/,
  'Add a colleague': /kwp_\w+/,
  'Replace credentials': /kwk_\w+[^]*nightly report[^]*Revoked the management token/,
  'Rotate the signing key': /KEY ID[^]*signs new files[^]*retired/,
  'Check your plan': /plan +STANDARD/,
}

test('every command of the guide succeeds and prints the expected output', { timeout: 60_000 }, async () => {
  for (const { title, commands } of sections) {
    await BEFORE[title]?.()
    let printed = ''
    for (const line of commands) printed += await runLine(line)
    expect([title, printed]).toEqual([title, expect.stringMatching(EXPECTED[title] ?? /./)])
  }
})

test('the guide states the number of its commands correctly', () => {
  const counted = [...guide.matchAll(/^\| ([A-Z][^|]+) \| (\d+) \|$/gm)].map(([, title, count]) => [
    title,
    Number(count),
  ])
  expect(counted).toEqual(sections.map(({ title, commands }) => [title, commands.length]))
})
