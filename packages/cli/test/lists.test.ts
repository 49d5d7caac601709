import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'

import { type TestShell, openShell } from './run-cli.ts'

let shell: TestShell
beforeAll(async () => {
  shell = await openShell()
  shell.env['KEYWARD_URL'] = 'http://127.0.0.1:9'
})
afterAll(() => shell.clear())

async function dryRun(name: string, content: string | Uint8Array, ...flags: string[]): Promise<unknown> {
  await shell.write(name, content)
  const printed = await shell.cli('--json', 'rules', 'import', name, '--dry-run', ...flags)
  const value: unknown = JSON.parse(printed.code === 0 ? printed.out : printed.err)
  return value
}

const good = (rows: number): object => ({ rows, invalid: 0, dryRun: true })
const failure = z.object({
  error: z.object({ message: z.string(), details: z.array(z.string()), exitCode: z.literal(2) }),
})

/** Returns the error of a dry run: the message and the details, each in one line. */
async function failed(name: string, content: string | Uint8Array, ...flags: string[]): Promise<string> {
  const { error } = failure.parse(await dryRun(name, content, ...flags))
  return [error.message, ...error.details].join('\n')
}

describe('plain lists', () => {
  test('plain lists may contain comments and blank lines', async () => {
    const list = '\uFEFF# a list\n\n203.0.113.7\r\n 10.0.0.0/8 ; SBL1\n2001:db8::/32 # note\n; end'
    expect(await dryRun('list.txt', list)).toEqual(good(3))
  })

  test('cuts comments of plain lists to the length of a note without splitting characters', async () => {
    const comments = [499, 500].map((length) => `${'x'.repeat(length - 1)}\u{1F6AB} and more`)
    expect(await dryRun('list.txt', comments.map((comment) => `192.0.2.1 # ${comment}`).join('\n'))).toEqual(good(2))
  })

  test('names the line of a value that is not an address', async () => {
    expect(await failed('list.txt', '203.0.113.7\n203.0.113.256\n')).toMatch(
      /^1 of 2 rows.*\nline 2: value: "203.0.113.256" must be an IPv4 or IPv6 address or a CIDR range$/,
    )
  })

  test('keeps machine ids of plain lists unchanged', async () => {
    expect(await dryRun('ids.txt', ' a#b ; c \n# a comment\n', '--type', 'HWID')).toEqual(good(1))
  })

  test('rejects plain lists with bytes that are not UTF-8', async () => {
    expect(await failed('ids.txt', new Uint8Array([0x61, 0xff, 0x0a]), '--type', 'HWID')).toMatch(/is not UTF-8/)
  })
})

describe('CSV', () => {
  test('maps CSV columns by the heading and sets other fields from flags', async () => {
    const csv = 'type,value,note\nHWID,"a,\n""b""",two lines\nIP,192.0.2.0/24,\n'
    expect(await dryRun('rules.csv', csv)).toEqual(good(2))
  })

  test('names the line of each CSV row when a column is unknown', async () => {
    expect(await failed('rules.csv', 'value,colour\n192.0.2.1,red\n')).toMatch(/^line 2: .*colour/m)
  })

  test('rejects CSV with an unclosed quote', async () => {
    expect(await failed('rules.csv', 'value\n"192.0.2.1\n')).toMatch(/not valid CSV/)
  })

  test('sets allowSuspendedOrExpired on exclusions only', async () => {
    const heading = 'value,kind,allowSuspendedOrExpired'
    expect(await dryRun('rules.csv', `${heading}\n192.0.2.1,EXCLUSION,true\n192.0.2.2,EXCLUSION,\n`)).toEqual(good(2))
    expect(await failed('rules.csv', `${heading}\n192.0.2.1,BLACKLIST,true\n`)).toMatch(
      /must be false or absent for the kind BLACKLIST/,
    )
  })
})

describe('JSON', () => {
  const rule = { kind: 'BLACKLIST', type: 'COUNTRY', value: 'de', scope: 'ORGANIZATION' }

  test.each([
    ['rules.json', JSON.stringify([rule, '192.0.2.1'])],
    ['rules.json', ` \n${JSON.stringify({ rules: [rule, { value: '192.0.2.1' }] })}`],
    ['rules.jsonl', `${JSON.stringify(rule)}\n\n"192.0.2.1"\n`],
    ['rules.ndjson', `${JSON.stringify(rule)}\n"192.0.2.1"`],
  ])('accepts an array, an object with rules, or one rule per line: %s', async (name, content) => {
    expect(await dryRun(name, content)).toEqual(good(2))
  })

  test('names the number of each invalid JSON item', async () => {
    expect(await failed('rules.json', JSON.stringify([rule, { ...rule, value: 'QQ' }, 7]))).toMatch(
      /\nitem 2: value: "QQ" must be an assigned ISO 3166-1 alpha-2 country code, such as DE\nitem 3: value/,
    )
  })

  test.each(['', '{}', '[', '[}', '{"rules": 1}'])('rejects JSON without rules: %s', async (content) => {
    expect(await failed('rules.json', content)).toMatch(/contains no rules|not valid JSON/)
  })

  test('accepts a list of 30,000 items', async () => {
    const items = Array.from({ length: 30_000 }, (_, i) => `10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`)
    expect(await dryRun('long.json', JSON.stringify(items))).toEqual(good(30_000))
  })
})

test('skips invalid rows with --skip-invalid', async () => {
  expect(await dryRun('list.txt', '192.0.2.1\nnonsense\n', '--skip-invalid')).toEqual({
    rows: 2,
    invalid: 1,
    dryRun: true,
  })
})

test('applies the scope of the flags only to rows without a scope', async () => {
  const id = '019a8b3c-5d2e-7f10-8a4b-6c7d8e9f0a1b'
  const rows = [{ value: '192.0.2.1' }, { value: '192.0.2.2', scope: 'ORGANIZATION' }]
  expect(await dryRun('rules.json', JSON.stringify(rows), '--license', id)).toEqual(good(2))
  expect(await failed('rules.json', JSON.stringify(rows), '--license', 'x')).toMatch(/^item 1: scopeId/m)
})

describe('wrong usage', () => {
  test.each([
    [['rules', 'import', 'missing.txt'], /cannot be read/],
    [['rules', 'import', 'list.xls'], /cannot be read/],
    [['license', 'create', '--max-machines', 'many'], /whole number/],
    [['license', 'creat'], /did you mean create/i],
    [['rules', 'import', 'a', '--type', 'MAC'], /Allowed choices are IP, HWID, COUNTRY, CUSTOMER/],
    [['--operator-token', 'x', 'org', 'create', ''], /^"" is not a valid name of an organization\n {2}\S/],
    [['--operator-token', 'x', 'org', 'create', ' '], /^" " is not a valid name of an organization\n {2}\S/],
    [['--url', 'example.com', 'status'], /example\.com is not a URL\. .* such as https/],
    [['status'], /--operator-token or KEYWARD_OPERATOR_TOKEN/],
    [['--url', 'http://licenses.example.com', 'status'], /in clear text\. Use https, or --allow-http/],
    [['--url', 'http://127.0.0.1.example.com', 'status'], /in clear text\. Use https, or --allow-http/],
  ])('exits with 2 and describes the wrong usage: %j', async (args, expected) => {
    const printed = await shell.cli(...args)
    expect(printed.code).toBe(2)
    expect(printed.err).toMatch(expected)
  })

  test('treats an empty variable as not set, and reports the old name of a variable', async () => {
    Object.assign(shell.env, { KEYWARD_OPERATOR_TOKEN: '', OPERATOR_TOKEN: 'x' })
    const old = await shell.cli('status')
    expect([old.code, old.err]).toEqual([
      3,
      expect.stringMatching(/^OPERATOR_TOKEN is the old name of KEYWARD_OPERATOR_TOKEN\.\n/),
    ])
    shell.env['OPERATOR_TOKEN'] = ''
    expect((await shell.cli('status')).err).toMatch(/^.*--operator-token or KEYWARD_OPERATOR_TOKEN/)
    Object.assign(shell.env, { KEYWARD_OPERATOR_TOKEN: 'y', OPERATOR_TOKEN: 'x' })
    expect((await shell.cli('status')).err).toMatch(/have different values; remove OPERATOR_TOKEN/)
    delete shell.env['KEYWARD_OPERATOR_TOKEN']
    delete shell.env['OPERATOR_TOKEN']
  })

  test('sends the token over http only to this machine or with --allow-http', async () => {
    const status = ['--operator-token', 'x', '--url', 'http://licenses.invalid', 'status']
    expect(await shell.cli(...status)).toMatchObject({ code: 2 })
    expect(await shell.cli('--allow-http', ...status)).toMatchObject({ code: 3 })
    shell.env['KEYWARD_ALLOW_HTTP'] = '1'
    expect(await shell.cli(...status)).toMatchObject({ code: 3 })
    delete shell.env['KEYWARD_ALLOW_HTTP']
    for (const host of ['localhost:9', '[::1]:9', '127.0.0.1:9'])
      expect(await shell.cli('--operator-token', 'x', '--url', `http://${host}`, 'status')).toMatchObject({ code: 3 })
  })

  test('exits with 3 when the service does not respond', async () => {
    const printed = await shell.cli('--operator-token', 'x', 'status')
    expect(printed.code).toBe(3)
    expect(printed.err).toMatch(/cannot be reached \(.+\)/)
  })

  test('prints the error as JSON with --json', async () => {
    const printed = await shell.cli('--json', '--operator-token', 'x', 'status')
    expect(JSON.parse(printed.err)).toMatchObject({ error: { exitCode: 3, details: [] } })
  })
})

test('prints one field with --get, and names all fields for an unknown one', async () => {
  await shell.write('list.txt', '192.0.2.1\n')
  expect(await shell.cli('--get', 'rows', 'rules', 'import', 'list.txt', '--dry-run')).toMatchObject({ out: '1\n' })
  const printed = await shell.cli('--get', 'row', 'rules', 'import', 'list.txt', '--dry-run')
  expect([printed.code, printed.err]).toEqual([2, 'The result has no field row\n  Fields: rows, invalid, dryRun.\n'])
})
