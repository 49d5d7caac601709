import { auditLog } from '@keyward/contract/management/audit'
import { z } from 'zod'

import type { CliCommand } from '../../command.ts'
import { isExported, withExport } from '../export.ts'
import { listFlags, periodFlags, periodOf, printList, readList, withLimit, withPeriod } from '../lists.ts'

const MAX_CHANGES_LENGTH = 80

const filterFlags = listFlags.extend({
  ...periodFlags.shape,
  action: z.string().optional(),
  resourceType: z.string().optional(),
  resource: z.string().optional(),
  actor: z.string().optional(),
})

export function addAuditLogCommand(parent: CliCommand): void {
  const description = 'list changes with their callers, newest first; --json prints all values'
  withExport(withPeriod(withLimit(parent.command('audit-log').description(description))))
    .option('--action <action>', 'only this action, such as license.suspended')
    .option('--resource-type <type>', 'only resources of this type, such as license')
    .option('--resource <id>', 'only changes of this resource')
    .option('--actor <id>', 'only changes by this credential')
    .run(async (session, flags) => {
      const { limit, action, resourceType, resource, actor, ...period } = filterFlags.parse(flags)
      const query = {
        action,
        resourceType,
        resourceId: resource,
        actorId: actor,
        ...periodOf(period, session.context.nowMs()),
      }
      if (await isExported(session, flags, auditLog.exportAuditLog, query)) return
      const list = await readList(session.api, auditLog.listAuditLog, { query }, limit)
      printList(session, list, (one) => ({
        AT: one.at,
        BY: one.actor.name ?? one.actor.type,
        ACTION: one.action,
        RESOURCE: one.resourceId ?? '–',
        CHANGES: short(JSON.stringify(one.changes ?? {})),
      }))
    })
}

function short(text: string): string {
  return text.length > MAX_CHANGES_LENGTH ? `${text.slice(0, MAX_CHANGES_LENGTH)}…` : text
}
