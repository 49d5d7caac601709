import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'

import { type Desk, openDesk } from './run-cli.ts'

let desk: Desk
beforeAll(async () => {
  desk = await openDesk()
  desk.env['KEYWARD_URL'] = 'http://127.0.0.1:9'
})
afterAll(() => desk.clear())

async function dryRun(name: string, content: string | Uint8Array, ...flags: string[]): Promise<unknown> {
  await desk.write(name, content)
  const said = await desk.cli('--json', 'rules', 'import', name, '--dry-run', ...flags)
  const value: unknown = JSON.parse(said.code === 0 ? said.out : said.err)
  return value
}

const good = (rows: number): object => ({ rows, invalid: 0, dryRun: true })
const refusal = z.object({
  error: z.object({ message: z.string(), details: z.array(z.string()), exitCode: z.literal(2) }),
})

/** The refusal of a dry run: its sentence and its details, a line each. */
async function refused(name: string, content: string | Uint8Array, ...flags: string[]): Promise<string> {
  const { error } = refusal.parse(await dryRun(name, content, ...flags))
  return [error.message, ...error.details].join('\n')
}

describe('plain lists', () => {
  test('hold a value a line, with comments and blank lines', async () => {
    const list = '\uFEFF# a list\n\n203.0.113.7\r\n 10.0.0.0/8 ; SBL1\n2001:db8::/32 # note\n; end'
    expect(await dryRun('list.txt', list)).toEqual(good(3))
  })

  test('whose comments are too long for a note are cut between characters', async () => {
    const comments = [499, 500].map((length) => `${'x'.repeat(length - 1)}\u{1F6AB} and more`)
    expect(await dryRun('list.txt', comments.map((comment) => `192.0.2.1 # ${comment}`).join('\n'))).toEqual(good(2))
  })

  test('name the line of what is no address', async () => {
    expect(await refused('list.txt', '203.0.113.7\n203.0.113.256\n')).toMatch(
      /^1 of 2 rows.*\nline 2: value: "203.0.113.256" is not an IP address or CIDR range$/,
    )
  })

  test('take machine ids as they stand', async () => {
    expect(await dryRun('ids.txt', ' a#b ; c \n# a comment\n', '--type', 'HWID')).toEqual(good(1))
  })

  test('of bytes that are not UTF-8 are refused', async () => {
    expect(await refused('ids.txt', new Uint8Array([0x61, 0xff, 0x0a]), '--type', 'HWID')).toMatch(/is not UTF-8/)
  })
})

describe('CSV', () => {
  test('takes fields from its heading, and the rest from flags', async () => {
    const csv = 'type,value,note\nHWID,"a,\n""b""",two lines\nIP,192.0.2.0/24,\n'
    expect(await dryRun('rules.csv', csv)).toEqual(good(2))
  })

  test('with an unknown column is refused row by row', async () => {
    expect(await refused('rules.csv', 'value,colour\n192.0.2.1,red\n')).toMatch(/^line 2: .*colour/m)
  })

  test('whose quotes do not close is refused', async () => {
    expect(await refused('rules.csv', 'value\n"192.0.2.1\n')).toMatch(/not sound CSV/)
  })

  test('can let suspended and expired licenses through', async () => {
    const heading = 'value,kind,allowSuspendedOrExpired'
    expect(await dryRun('rules.csv', `${heading}\n192.0.2.1,EXCLUSION,true\n192.0.2.2,EXCLUSION,\n`)).toEqual(good(2))
    expect(await refused('rules.csv', `${heading}\n192.0.2.1,BLACKLIST,true\n`)).toMatch(/only an exclusion/)
  })
})

describe('JSON', () => {
  const rule = { kind: 'BLACKLIST', type: 'COUNTRY', value: 'de', scope: 'ORGANIZATION' }

  test.each([
    ['rules.json', JSON.stringify([rule, '192.0.2.1'])],
    ['rules.json', ` \n${JSON.stringify({ rules: [rule, { value: '192.0.2.1' }] })}`],
    ['rules.jsonl', `${JSON.stringify(rule)}\n\n"192.0.2.1"\n`],
    ['rules.ndjson', `${JSON.stringify(rule)}\n"192.0.2.1"`],
  ])('%s', async (name, content) => {
    expect(await dryRun(name, content)).toEqual(good(2))
  })

  test('names the item that is wrong', async () => {
    expect(await refused('rules.json', JSON.stringify([rule, { ...rule, value: 'QQ' }, 7]))).toMatch(
      /\nitem 2: value: "QQ" is not an ISO 3166-1 alpha-2 code\nitem 3: value/,
    )
  })

  test.each(['', '{}', '[', '[}', '{"rules": 1}'])('that holds no rules is refused: %s', async (content) => {
    expect(await refused('rules.json', content)).toMatch(/holds no rules|not sound JSON/)
  })

  test('of any length streams in', async () => {
    const items = Array.from({ length: 30_000 }, (_, i) => `10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`)
    expect(await dryRun('long.json', JSON.stringify(items))).toEqual(good(30_000))
  })
})

test('bad rows can be left out', async () => {
  expect(await dryRun('list.txt', '192.0.2.1\nnonsense\n', '--skip-invalid')).toEqual({
    rows: 2,
    invalid: 1,
    dryRun: true,
  })
})

test('a scope from the flags leaves rows with a scope of their own alone', async () => {
  const id = '019a8b3c-5d2e-7f10-8a4b-6c7d8e9f0a1b'
  const rows = [{ value: '192.0.2.1' }, { value: '192.0.2.2', scope: 'ORGANIZATION' }]
  expect(await dryRun('rules.json', JSON.stringify(rows), '--license', id)).toEqual(good(2))
  expect(await refused('rules.json', JSON.stringify(rows), '--license', 'x')).toMatch(/^item 1: scopeId/m)
})

describe('help for people', () => {
  test.each([
    [['rules', 'import', 'missing.txt'], /cannot be read/],
    [['rules', 'import', 'list.xls'], /cannot be read/],
    [['license', 'create', '--max-machines', 'many'], /whole number/],
    [['license', 'creat'], /did you mean create/i],
    [['rules', 'import', 'a', '--type', 'MAC'], /Allowed choices are IP, HWID, COUNTRY, CUSTOMER/],
    [['--operator-token', 'x', 'org', 'create', ''], /^"" is no name for an organization\n {2}\S/],
    [['--operator-token', 'x', 'org', 'create', ' '], /^" " is no name for an organization\n {2}\S/],
    [['--url', 'example.com', 'status'], /it takes one such as https/],
    [['status'], /--operator-token or OPERATOR_TOKEN/],
  ])('%j', async (args, expected) => {
    const said = await desk.cli(...args)
    expect(said.code).toBe(2)
    expect(said.err).toMatch(expected)
  })

  test('a service that does not answer is told from one that refuses', async () => {
    const said = await desk.cli('--operator-token', 'x', 'status')
    expect(said.code).toBe(3)
    expect(said.err).toMatch(/cannot be reached \(.+\)/)
  })

  test('a script gets the error as JSON', async () => {
    const said = await desk.cli('--json', '--operator-token', 'x', 'status')
    expect(JSON.parse(said.err)).toMatchObject({ error: { exitCode: 3, details: [] } })
  })
})
