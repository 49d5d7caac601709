/**
 * A stable id for the machine that the app runs on. The operating system's own id never leaves the machine. The client
 * sends an HMAC of it, which reveals neither that id nor that two vendors' apps run on the same machine.
 */

import { execFile } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'

/**
 * Returns the id of this machine for the app named `app`: 32 lower-case hexadecimal digits. It is the same at every run
 * and for every user of the machine, and different for another `app`. Returns null where the system has no id of its
 * own, as in some containers.
 *
 * Sources: Linux `/etc/machine-id`, else `/var/lib/dbus/machine-id`; macOS the IOPlatformUUID of the I/O registry; Windows
 * `HKLM\SOFTWARE\Microsoft\Cryptography\MachineGuid`; FreeBSD `/etc/hostid`. They survive restarts and updates, and change
 * when the system is reinstalled. Cloned virtual machines share an id until each of them generates a new one.
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
          // A 32-bit process has a registry view of its own; this reads the 64-bit one.
          '/reg:64',
        ]),
      )
    default:
      return null
  }
}

/** Finds the IOPlatformUUID in the output of `ioreg -rd1 -c IOPlatformExpertDevice`. Returns null when it has none. */
export function parseIoregOutput(output: string): string | null {
  return normalize(/"IOPlatformUUID"\s*=\s*"([^"]+)"/.exec(output)?.[1])
}

/** Finds the MachineGuid in the output of `reg query`. Returns null when it has none. */
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

/** Returns null for `uninitialized`, which systemd writes before the first start of an image, and for blank or zero ids. */
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
