/** Members: the people who act for a vendor. Their access tokens never do more than they themselves may. */
import type { createMember, Member, Permission, updateMember } from '@keyward/contract'
import { type Database, uuidv7, violatedConstraint } from '@keyward/database'
import type { Selectable } from 'kysely'
import type { z } from 'zod'

import { audit, type Change } from '../../audit/writer.ts'
import { differences } from '../../crud/differences.ts'
import type { Db } from '../../http/context.ts'
import { type PageQuery, readPage } from '../../http/pagination.ts'
import { notFound, Refusal } from '../../http/problem.ts'
import { refuseToGrant } from '../credentials/store.ts'

function show(row: Selectable<Database['members']>): Member {
  const { id, email, permissions } = row
  return { id, email, permissions, createdAt: row.createdAt.toISOString(), updatedAt: row.updatedAt.toISOString() }
}

function refuseTakenEmail(error: unknown): never {
  throw violatedConstraint(error) === 'members_email' ? new Refusal('MEMBER_EXISTS') : error
}

export async function listMembers(db: Db, organizationId: string, query: PageQuery) {
  const list = { name: 'members', organizationId }
  const select = db.selectFrom('members').selectAll().where('organizationId', '=', organizationId)
  return readPage(list, query, select, show)
}

export async function readMember(db: Db, organizationId: string, id: string): Promise<Member> {
  const row = await db
    .selectFrom('members')
    .selectAll()
    .where('organizationId', '=', organizationId)
    .where('id', '=', id)
    .executeTakeFirst()
  if (!row) throw notFound('member')
  return show(row)
}

export async function addMember(
  change: Change,
  own: ReadonlySet<Permission>,
  input: z.output<typeof createMember>,
): Promise<Member> {
  refuseToGrant(input.permissions, own)
  const { db, organizationId } = change
  const row = await db
    .insertInto('members')
    .values({ id: uuidv7(), organizationId, ...input })
    .returningAll()
    .executeTakeFirstOrThrow()
    .catch(refuseTakenEmail)
  await audit(change, { action: 'member.created', resourceType: 'member', resourceId: row.id, changes: input })
  return show(row)
}

/** Permissions that the member already has may stay, also those that the caller lacks. */
export async function changeMember(
  change: Change,
  own: ReadonlySet<Permission>,
  id: string,
  input: z.output<typeof updateMember>,
): Promise<Member> {
  const { db, organizationId } = change
  const before = await db
    .selectFrom('members')
    .selectAll()
    .where('organizationId', '=', organizationId)
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst()
  if (!before) throw notFound('member')
  const { permissions } = input
  if (permissions)
    refuseToGrant(
      permissions.filter((name) => !before.permissions.includes(name)),
      own,
    )
  const changed = differences(before, input)
  if (changed === null) return show(before)
  const row = await db
    .updateTable('members')
    .set({ ...changed, updatedAt: new Date() })
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow()
    .catch(refuseTakenEmail)
  await audit(change, { action: 'member.changed', resourceType: 'member', resourceId: id, changes: input })
  return show(row)
}

export async function deleteMember(change: Change, id: string): Promise<void> {
  const row = await change.db
    .deleteFrom('members')
    .where('organizationId', '=', change.organizationId)
    .where('id', '=', id)
    .returning('email')
    .executeTakeFirst()
  if (!row) throw notFound('member')
  await audit(change, { action: 'member.deleted', resourceType: 'member', resourceId: id, changes: row })
}
