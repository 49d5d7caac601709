import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import { expect, test } from 'vitest'

import { describeError } from '../src/index.ts'

const logging = fileURLToPath(new URL('programs/logging.ts', import.meta.url))

test('writes an entry as one line of JSON, without the additional fields of errors', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [logging])
  const lines = stdout.trimEnd().split('\n')
  expect(lines).toHaveLength(1)
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({
    level: 'error',
    program: 'logging',
    msg: 'feed stopped',
    err: { type: 'Error', message: 'no response', cause: { message: 'refused' } },
  })
  expect(stdout).toMatch(/"time":"\d{4}-\d\d-\d\dT[\d:.]+Z"/)
  expect(stdout).not.toContain('203.0.113.7')
})

test('escapes characters that a terminal interprets, and keeps the values', async () => {
  const machineId = 'fp\u001b]0;x\u0007\u007f\u009b2K\u202egnp\u2066\r\n\u2028'
  const { stdout } = await promisify(execFile)(process.execPath, [logging, machineId])
  expect(stdout).not.toMatch(/[\p{Cc}\u202e\u2066\u2028](?<!\n)/u)
  const lines = stdout.trimEnd().split('\n')
  expect(lines).toHaveLength(2)
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ machineId, msg: 'text from outside' })
})

test('describes errors and other values that were thrown', () => {
  expect(describeError('a word')).toEqual({ type: 'string', message: 'a word' })
  expect(describeError(Object.assign(new TypeError('no'), { code: 'ERR_X' }))).toMatchObject({
    type: 'TypeError',
    message: 'no',
    code: 'ERR_X',
  })
})
