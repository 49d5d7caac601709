import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'

import { missingEngine } from '../../containers/support/docker.ts'
import { arePresent } from './programs.ts'

const PROGRAMS = ['kubectl', 'etcd', 'iptables-save', 'ip', 'openssl']

/** Returns the reason why this machine cannot run the cluster, or null. */
export function missingRequirement(): string | null {
  if (process.getuid?.() !== 0 || process.platform !== 'linux') return 'a cluster requires root on Linux'
  const missing = [...PROGRAMS, ...(arePresent() ? [] : ['go'])].find(
    (program) => spawnSync('sh', ['-c', `command -v ${program}`]).status !== 0,
  )
  if (missing !== undefined) return `${missing} is not installed`
  if (!existsSync('/usr/lib/cni/bridge')) return 'the network plugins are not installed (containernetworking-plugins)'
  return missingEngine()
}
