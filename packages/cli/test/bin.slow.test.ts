import { execFileSync } from 'node:child_process'
import { tmpdir } from 'node:os'
import { fileURLToPath } from 'node:url'

import { VERSION } from '@keyward/contract/version'
import { expect, test } from 'vitest'

const BIN = fileURLToPath(new URL('../bin/keyward', import.meta.url))
const keyward = (...args: string[]): string => execFileSync(BIN, args, { cwd: tmpdir(), encoding: 'utf8' })

test('the program runs from any folder and prints the help of commands', () => {
  expect(keyward('--help')).toMatch(/Exit codes/)
  expect(keyward('rules', 'import', '--help')).toMatch(/--dry-run/)
})

test('prints the version', () => {
  expect(keyward('--version')).toBe(`${VERSION}\n`)
})

test('completes commands, options and values', () => {
  expect(keyward('complete', '--', 'li')).toMatch(/^license\t/m)
  expect(keyward('complete', '--', 'rules', 'import', '--ki')).toMatch(/^--kind\t/m)
  expect(keyward('complete', '--', 'rules', 'import', '--kind', 'E')).toMatch(/^EXCLUSION/m)
})

test.each(['bash', 'zsh', 'fish', 'powershell'])('prints the completion script for %s', (shell) => {
  expect(keyward('complete', shell)).toContain('keyward')
})
