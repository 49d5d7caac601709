import { existsSync, readFileSync } from 'node:fs'

import { describe, expect, test } from 'vitest'

import { parseIoregOutput, parseRegOutput } from '../src/machine-id.ts'
import { machineId } from '../src/node.ts'

const LINUX_ID = '/etc/machine-id'

test.skipIf(!existsSync(LINUX_ID))(
  `returns a stable id that differs between apps and from the id of the system (skipped without ${LINUX_ID})`,
  async () => {
    const id = await machineId('acme-editor')
    expect(id).toMatch(/^[0-9a-f]{32}$/)
    expect(await machineId('acme-editor')).toBe(id)
    expect(await machineId('other-app')).not.toBe(id)
    expect(readFileSync(LINUX_ID, 'utf8')).not.toContain(id)
  },
)

describe('a system id', () => {
  test('parses the system id from the output of ioreg on macOS', () => {
    const output = `+-o J316sAP  <class IOPlatformExpertDevice, id 0x10000025e, registered, matched, active, busy 0>
    {
      "IOPlatformSerialNumber" = "XXXXXXXXXX"
      "IOPlatformUUID" = "0F7C2A6E-5B1D-4E0A-9C33-AB12CD34EF56"
    }`
    expect(parseIoregOutput(output)).toBe('0f7c2a6e-5b1d-4e0a-9c33-ab12cd34ef56')
    expect(parseIoregOutput('')).toBeNull()
  })

  test('parses the system id from the output of reg on Windows', () => {
    const output = `\r\nHKEY_LOCAL_MACHINE\\SOFTWARE\\Microsoft\\Cryptography\r\n    MachineGuid    REG_SZ    5f0c2b1a-77aa-4b5e-8f21-0a1b2c3d4e5f\r\n\r\n`
    expect(parseRegOutput(output)).toBe('5f0c2b1a-77aa-4b5e-8f21-0a1b2c3d4e5f')
    expect(parseRegOutput('ERROR: The system was unable to find the specified registry key or value.')).toBeNull()
    expect(parseRegOutput('MachineGuid    REG_SZ    00000000-0000-0000-0000-000000000000')).toBeNull()
  })
})
