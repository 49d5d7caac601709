import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { INFRA } from './manifests.ts'

const read = (path: string): string => readFileSync(join(INFRA, path), 'utf8')
const isInstalled = spawnSync('systemd-analyze', ['--version']).status === 0
const units = readdirSync(join(INFRA, 'systemd'))

test.skipIf(!isInstalled)('systemd accepts the units (needs systemd-analyze)', () => {
  const folder = mkdtempSync(join(tmpdir(), 'keyward-units-'))
  for (const name of units)
    writeFileSync(join(folder, name), read(`systemd/${name}`).replace('/usr/bin/node', process.execPath))
  const paths = units.map((name) => join(folder, name))
  const { status, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', ...paths], { encoding: 'utf8' })
  rmSync(folder, { recursive: true })
  expect([status, stderr]).toEqual([0, ''])
})

test.each(units)('%s starts a program of the package keyward, without privileges', (name) => {
  const unit = read(`systemd/${name}`)
  const program = /^ExecStart=\/usr\/bin\/node (?:--\S+ )*(\S+)\.js/m.exec(unit)?.[1]
  expect(existsSync(join(INFRA, '..', `${program}.ts`))).toBe(true)
  expect(unit).toMatch(/DynamicUser=yes[^]*NoNewPrivileges=yes[^]*LimitCORE=0[^]*WantedBy=multi-user\.target/)
})
