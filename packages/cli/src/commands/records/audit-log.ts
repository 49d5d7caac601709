/** `audit-log`: lists changes with their actors and times. */

import { auditEntry } from '@keyward/contract/management/audit'
import type { Command } from 'commander'

import type { Session } from '../../session.ts'
import { fetchList, listFlags, printList, withLimit } from '../lists.ts'

const MAX_CHANGES_LENGTH = 80

export function addAuditLogCommand(parent: Command, open: (command: Command) => Session): void {
  withLimit(
    parent.command('audit-log').description('list changes with their callers, newest first; --json prints all values'),
  ).action(async (flags: unknown, command: Command) => {
    const session = open(command)
    const list = await fetchList(session.api, '/audit-log', auditEntry, listFlags.parse(flags).limit)
    printList(session, list, ['AT', 'BY', 'ACTION', 'RESOURCE', 'CHANGES'], (one) => [
      one.at,
      one.actor.name ?? one.actor.type,
      one.action,
      one.resourceId ?? '–',
      short(JSON.stringify(one.changes ?? {})),
    ])
  })
}

function short(text: string): string {
  return text.length > MAX_CHANGES_LENGTH ? `${text.slice(0, MAX_CHANGES_LENGTH)}…` : text
}
