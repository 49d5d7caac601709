/** Lists the members of the organization, invites and removes members, and changes their permissions. */

import { ALL_PERMISSIONS, type Member } from '@keyward/contract'
import { members } from '@keyward/contract/management/members'
import { Button, Group, TextInput } from '@mantine/core'
import { useState } from 'react'

import { useEdit } from '../api/edit.ts'
import { useCall, useList } from '../api/hooks.ts'
import { useSignedIn } from '../api/me.ts'
import { ConfirmButton } from '../parts/confirm.tsx'
import { useFields } from '../parts/fields.ts'
import { FormWindow } from '../parts/form.tsx'
import { Screen } from '../parts/page-header.tsx'
import { When } from '../parts/parts.tsx'
import { permissionsOf, permissionsText, PermissionsField, READ_ONLY } from '../parts/permissions-field.tsx'
import { SecretWindow } from '../parts/secret-window.tsx'
import { type Column, ListTable } from '../parts/table.tsx'
import { useUrlParameters } from '../parts/url.ts'
import { text } from '../text.ts'

/** Returns the name of the role whose permissions these are. */
function roleOf(permissions: readonly string[]): string {
  if (ALL_PERMISSIONS.every((one) => permissions.includes(one))) return 'Owner'
  if (permissions.every((one) => one.endsWith('.read'))) return 'Read only'
  return permissions.includes('credentials.write') ? 'Manager' : 'Custom'
}

/** The window that invites a member, or changes one. */
function MemberWindow({
  before,
  onClose,
  onInvited,
}: {
  before: Member | null
  onClose: () => void
  onInvited: (path: string | null) => void
}) {
  const {
    values,
    change,
    text: field,
  } = useFields({
    email: before?.email ?? '',
    permissions: before?.permissions ?? READ_ONLY,
  })
  const saving = useEdit(members.updateMember, before, {
    done: 'Saved the member.',
    create: members.createMember,
    onCreated: ({ invitation }) => onInvited(invitation?.path ?? null),
  })
  return (
    <FormWindow
      title={before ? 'Change' : 'Invite a member'}
      action={before ? 'Save' : 'Invite a member'}
      onClose={onClose}
      onSubmit={() => saving.mutateAsync({ ...values, permissions: permissionsOf(values.permissions) })}
    >
      {(errors) => (
        <>
          <TextInput label="E-mail" type="email" {...field('email', errors)} required data-autofocus />
          <PermissionsField value={values.permissions} onChange={(permissions) => change({ permissions })} />
        </>
      )}
    </FormWindow>
  )
}

export default function Team() {
  const me = useSignedIn()
  const list = useList(members.listMembers, {})
  const [edited, setEdited] = useState<Member | 'new' | null>(useUrlParameters().has('new') ? 'new' : null)
  const [path, setPath] = useState<string | null>(null)
  const invite = useCall(members.createInvitation, {
    onDone: (created) => setPath(created.path ?? null),
  })
  const remove = useCall(members.deleteMember, { done: 'Removed the member.' })
  const open = () => setEdited('new')
  const columns: readonly Column<Member>[] = [
    {
      title: 'E-mail',
      cell: ({ id, email }) => (
        <>
          <bdi className="name">{email}</bdi>
          {id === me.member?.id && <span className="faint"> (you)</span>}
        </>
      ),
    },
    {
      title: 'Role',
      cell: ({ permissions }) => (
        <>
          {roleOf(permissions)}
          <span className="sub wrap">{permissionsText(permissions)}</span>
        </>
      ),
    },
    { title: 'Created', cell: ({ createdAt }) => <When at={createdAt} /> },
    {
      title: text.actions,
      cell: (one) => (
        <Group gap="xs" wrap="nowrap">
          <Button size="xs" variant="default" onClick={() => setEdited(one)}>
            Change
          </Button>
          <Button size="xs" variant="default" onClick={() => invite.mutate({ params: { id: one.id } })}>
            New link
          </Button>
          {one.id === me.member?.id ? null : (
            <ConfirmButton
              size="xs"
              label="Remove"
              title="Remove this member?"
              object={<bdi>{one.email}</bdi>}
              consequence="Ends the sessions of the member and revokes the personal access tokens. Tokens created with them are revoked too. API keys stay valid, because apps depend on them."
              onConfirm={() => remove.mutateAsync({ params: { id: one.id } })}
            />
          )}
        </Group>
      ),
    },
  ]
  return (
    <Screen title="Team" actions={<Button onClick={open}>Invite a member</Button>}>
      <ListTable
        list={list}
        columns={columns}
        label="Team"
        hasTwoLines
        empty="No members yet. Invite your colleagues; use management tokens for programs."
        create={<Button onClick={open}>Invite a member</Button>}
      />
      {edited !== null && (
        <MemberWindow before={edited === 'new' ? null : edited} onClose={() => setEdited(null)} onInvited={setPath} />
      )}
      {path !== null && (
        <SecretWindow
          title="Invite a member"
          hint={text.invited}
          secret={`${window.location.origin}${path}`}
          done="Done"
          onClose={() => setPath(null)}
        />
      )}
    </Screen>
  )
}
