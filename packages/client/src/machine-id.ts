/**
 * A stable id of the machine that the app runs on: an HMAC of the app's name, keyed with the system's id. The HMAC hides the system's id,
 * and differs between apps on the same machine.
 */

import { execFile } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'

/**
 * Returns the id of this machine for the app named `app`: 32 lower-case hexadecimal digits. The id is the same at every run and for every
 * user of the machine. Returns null if the system has no id, as in some containers.
 *
 * Sources: `/etc/machine-id` or `/var/lib/dbus/machine-id` on Linux, the IOPlatformUUID of the I/O registry on macOS,
 * `HKLM\SOFTWARE\Microsoft\Cryptography\MachineGuid` on Windows, and `/etc/hostid` on FreeBSD. These ids survive restarts and updates. The
 * IOPlatformUUID belongs to the hardware; the others change when the system is reinstalled. Cloned virtual machines share an id until they
 * generate new ones.
 */
export async function machineId(app: string): Promise<string | null> {
  const systemId = await readSystemId(process.platform)
  return systemId === null ? null : createHmac('sha256', systemId).update(`keyward:${app}`).digest('hex').slice(0, 32)
}

async function readSystemId(platform: string): Promise<string | null> {
  switch (platform) {
    case 'linux':
      return (await readId('/etc/machine-id')) ?? (await readId('/var/lib/dbus/machine-id'))
    case 'freebsd':
      return readId('/etc/hostid')
    case 'darwin':
      return parseIoregOutput(await run('/usr/sbin/ioreg', ['-rd1', '-c', 'IOPlatformExpertDevice']))
    case 'win32':
      return parseRegOutput(
        await run(`${process.env['SystemRoot'] ?? 'C:\\Windows'}\\System32\\reg.exe`, [
          'query',
          'HKLM\\SOFTWARE\\Microsoft\\Cryptography',
          '/v',
          'MachineGuid',
          // A 32-bit process sees another view of the registry by default. The option selects the 64-bit view.
          '/reg:64',
        ]),
      )
    default:
      return null
  }
}

/** Finds the IOPlatformUUID in the output of `ioreg -rd1 -c IOPlatformExpertDevice`. Returns null when it is missing. */
export function parseIoregOutput(output: string): string | null {
  return normalize(/"IOPlatformUUID"\s*=\s*"([^"]+)"/.exec(output)?.[1])
}

/** Finds the MachineGuid in the output of `reg query`. Returns null when it is missing. */
export function parseRegOutput(output: string): string | null {
  return normalize(/MachineGuid\s+REG_SZ\s+(\S+)/.exec(output)?.[1])
}

async function readId(path: string): Promise<string | null> {
  try {
    return normalize(await readFile(path, 'utf8'))
  } catch {
    return null
  }
}

/**
 * Returns the id in lower case without surrounding blanks. Returns null for blank and zero ids, and for `uninitialized`, which
 * systemd writes before the first start.
 */
function normalize(text: string | undefined): string | null {
  const id = (text ?? '').trim().toLowerCase()
  return id === 'uninitialized' || /^[0-]*$/.test(id) ? null : id
}

async function run(command: string, args: string[]): Promise<string> {
  try {
    return (await promisify(execFile)(command, args, { timeout: 5000, windowsHide: true })).stdout
  } catch {
    return ''
  }
}
