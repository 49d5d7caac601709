// A stable id for the machine that the app runs on. The operating system's own id never leaves the machine: what is sent
// is an HMAC of it, so that neither it nor the same machine in another vendor's app can be recognized.

import { execFile } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'

/**
 * An id of this machine for the app named `app`: 32 lower-case hex digits, the same at every run and for every user of
 * the machine, another one for another `app`. Null where the system has no id of its own, as in some containers.
 *
 * Sources: Linux `/etc/machine-id`, else `/var/lib/dbus/machine-id`; macOS the IOPlatformUUID of the I/O registry; Windows
 * `HKLM\SOFTWARE\Microsoft\Cryptography\MachineGuid`; FreeBSD `/etc/hostid`. They survive restarts and updates, and change
 * when the system is installed anew. Cloned virtual machines share theirs until it is made anew in each.
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
          // Also from a 32-bit process, which has a registry of its own.
          '/reg:64',
        ]),
      )
    default:
      return null
  }
}

/** The IOPlatformUUID in what `ioreg -rd1 -c IOPlatformExpertDevice` prints. */
export function parseIoregOutput(output: string): string | null {
  return normalize(/"IOPlatformUUID"\s*=\s*"([^"]+)"/.exec(output)?.[1])
}

/** The MachineGuid in what `reg query` prints. */
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

/** systemd writes `uninitialized` before the first start of an image; a blank or zero id is no id either. */
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
