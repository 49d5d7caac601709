import { members } from '@keyward/contract/management/members'
import { type Passkey, passkeys, type Session, sessions } from '@keyward/contract/management/sign-in'
import { Alert, Button, Group, Stack, Text, TextInput, Title } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'

import { useCall, useChange, useList, useRead, wholeList } from '../api/hooks.ts'
import { useSignedIn } from '../api/me.ts'
import { offersPasskeys, registerPasskey } from '../api/passkeys.ts'
import { ConfirmButton } from '../parts/confirm.tsx'
import { CredentialList } from '../parts/credential-list.tsx'
import { useFields } from '../parts/fields.ts'
import { FormWindow } from '../parts/form.tsx'
import { Screen } from '../parts/page-header.tsx'
import { DotBadge, When } from '../parts/parts.tsx'
import { type Column, ListTable } from '../parts/table.tsx'
import { text } from '../text.ts'

function RegisterWindow({ onClose }: { onClose: () => void }) {
  const { values, text: field } = useFields({ name: '' })
  const register = useChange(registerPasskey, { done: 'Registered the passkey.', quiet: true })
  return (
    <FormWindow
      title="Register a passkey"
      action="Register a passkey"
      onClose={onClose}
      onSubmit={() => register.mutateAsync(values.name)}
    >
      {(errors) => (
        <TextInput
          label="Name"
          description="For example: work laptop."
          {...field('name', errors)}
          required
          data-autofocus
        />
      )}
    </FormWindow>
  )
}

function Passkeys() {
  const read = useRead(passkeys.listMyPasskeys, {})
  const [isNaming, naming] = useDisclosure(false)
  const remove = useCall(passkeys.deletePasskey)
  const columns: readonly Column<Passkey>[] = [
    { title: 'Name', cell: (one) => one.name },
    { title: 'Last used', cell: ({ lastUsedAt }) => <When at={lastUsedAt} /> },
    { title: 'Created', cell: ({ createdAt }) => <When at={createdAt} /> },
    {
      title: text.actions,
      cell: ({ id, name: its }) => (
        <ConfirmButton
          size="xs"
          label="Delete"
          title="Delete this passkey?"
          object={<bdi>{its}</bdi>}
          consequence="You can no longer sign in with this passkey."
          onConfirm={() => remove.mutateAsync({ params: { id } })}
        />
      ),
    },
  ]
  return (
    <Stack gap="sm" component="section" aria-label="Passkeys">
      <Group justify="space-between">
        <Title order={2} size="h4">
          Passkeys
        </Title>
        <Button onClick={naming.open} disabled={!offersPasskeys()}>
          Register a passkey
        </Button>
      </Group>
      <Text size="sm" c="dimmed">
        A passkey signs you in with your fingerprint, your face or the PIN of your device.
      </Text>
      {!offersPasskeys() && (
        <Alert color="blue">
          This browser offers no passkeys for this address. Passkeys need a host name and TLS, or localhost.
        </Alert>
      )}
      <ListTable
        list={wholeList(read, read.data?.data)}
        columns={columns}
        empty="No passkeys yet. Without a passkey, you need a new invitation for the next sign-in."
        label="Passkeys"
      />
      {isNaming && <RegisterWindow onClose={naming.close} />}
    </Stack>
  )
}

function Sessions() {
  const read = useRead(sessions.listMySessions, {})
  const end = useCall(sessions.endMySession, { done: 'Ended the session.' })
  const columns: readonly Column<Session>[] = [
    { title: 'Opened', cell: ({ createdAt }) => <When at={createdAt} /> },
    { title: 'Last used', cell: ({ lastUsedAt }) => <When at={lastUsedAt} /> },
    { title: 'With', cell: ({ method }) => text.methods[method] ?? method },
    {
      title: text.actions,
      cell: ({ id, isCurrent }) =>
        isCurrent ? (
          <DotBadge color="teal">this one</DotBadge>
        ) : (
          <Button size="xs" variant="default" onClick={() => end.mutate({ params: { id } })}>
            End
          </Button>
        ),
    },
  ]
  return (
    <Stack gap="sm" component="section" aria-label="Sessions">
      <Title order={2} size="h4">
        Sessions
      </Title>
      <ListTable list={wholeList(read, read.data?.data)} columns={columns} empty="" label="Sessions" />
    </Stack>
  )
}

function AccessTokens({ memberId }: { memberId: string }) {
  const params = { id: memberId }
  const list = useList(members.listAccessTokens, { params })
  const create = useCall(members.createAccessToken, { quiet: true })
  const revoke = useCall(members.revokeAccessToken, { done: 'Revoked the credential.' })
  return (
    <CredentialList
      title="Personal access tokens"
      hint="For your own scripts, and for signing in without a passkey. A token permits what both it and you may do, and ends when you leave."
      create="New personal access token"
      none="No personal access tokens."
      revokeHint="Scripts that use this token lose access at once."
      list={list}
      onCreate={({ name, permissions }) => create.mutateAsync({ params, body: { name, permissions } })}
      onRevoke={(tokenId) => revoke.mutateAsync({ params: { id: memberId, tokenId } })}
    />
  )
}

export default function Account() {
  const me = useSignedIn()
  return (
    <Screen title="Your account">
      <Text>{me.member?.email ?? me.kind.toLowerCase()}</Text>
      {me.member && <Passkeys />}
      {me.member && me.permissions.includes('credentials.write') && <AccessTokens memberId={me.member.id} />}
      <Sessions />
    </Screen>
  )
}
