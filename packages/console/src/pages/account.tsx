import { type Me, type Passkey, passkeyList, type Session, sessionList } from '@keyward/contract/management/sign-in'
import { Alert, Button, Group, Stack, Text, TextInput, Title } from '@mantine/core'
import { useState } from 'react'

import { callWithoutResponse } from '../api/client.ts'
import { useChange, useRead } from '../api/hooks.ts'
import { offersPasskeys, registerPasskey } from '../api/passkeys.ts'
import { CredentialList } from '../parts/credential-list.tsx'
import { FormWindow } from '../parts/form.tsx'
import { ConfirmButton, DotBadge, Screen, When } from '../parts/parts.tsx'
import { type Column, ListTable } from '../parts/table.tsx'
import { text } from '../text.ts'

const t = text.account

const whole = { hasMore: false, isLoadingMore: false, loadMore: () => undefined }

function Passkeys() {
  const { data, error, isPending } = useRead('/me/passkeys', passkeyList)
  const [name, setName] = useState<string | null>(null)
  const register = useChange((chosen: string) => registerPasskey(chosen), { done: t.registered, quiet: true })
  const remove = useChange((id: string) => callWithoutResponse({ method: 'DELETE', path: `/me/passkeys/${id}` }))
  const columns: readonly Column<Passkey>[] = [
    { title: t.passkeyName, cell: (one) => one.name },
    { title: t.lastUsed, cell: ({ lastUsedAt }) => <When at={lastUsedAt} /> },
    { title: text.licenses.createdOn, cell: ({ createdAt }) => <When at={createdAt} /> },
    {
      title: text.actions,
      cell: ({ id }) => (
        <ConfirmButton
          size="xs"
          label={t.remove}
          title={t.removeTitle}
          consequence={t.removeHint}
          onConfirm={() => remove.mutateAsync(id)}
        />
      ),
    },
  ]
  return (
    <Stack gap="sm" component="section" aria-label={t.passkeys}>
      <Group justify="space-between">
        <Title order={2} size="h4">
          {t.passkeys}
        </Title>
        <Button onClick={() => setName('')} disabled={!offersPasskeys()}>
          {t.newPasskey}
        </Button>
      </Group>
      <Text size="sm" c="dimmed">
        {t.passkeysHint}
      </Text>
      {!offersPasskeys() && <Alert color="blue">{t.unsupported}</Alert>}
      <ListTable
        list={{ ...whole, items: data?.data ?? [], error, isPending }}
        columns={columns}
        empty={t.noPasskeys}
        label={t.passkeys}
      />
      <FormWindow
        title={t.newPasskey}
        action={t.newPasskey}
        opened={name !== null}
        onClose={() => setName(null)}
        onSubmit={() => register.mutateAsync(name ?? '')}
      >
        {(errors) => (
          <TextInput
            label={t.passkeyName}
            description={t.passkeyNameHint}
            value={name ?? ''}
            onChange={(event) => setName(event.currentTarget.value)}
            error={errors['name']}
            required
            data-autofocus
          />
        )}
      </FormWindow>
    </Stack>
  )
}

function Sessions() {
  const { data, error, isPending } = useRead('/me/sessions', sessionList)
  const end = useChange((id: string) => callWithoutResponse({ method: 'DELETE', path: `/me/sessions/${id}` }), {
    done: t.ended,
  })
  const columns: readonly Column<Session>[] = [
    { title: t.opened, cell: ({ createdAt }) => <When at={createdAt} /> },
    { title: t.lastUsed, cell: ({ lastUsedAt }) => <When at={lastUsedAt} /> },
    { title: t.method, cell: ({ method }) => t.methods[method] ?? method },
    {
      title: text.actions,
      cell: ({ id, isCurrent }) =>
        isCurrent ? (
          <DotBadge color="teal">{t.current}</DotBadge>
        ) : (
          <Button size="xs" variant="default" onClick={() => end.mutate(id)}>
            {t.end}
          </Button>
        ),
    },
  ]
  return (
    <Stack gap="sm" component="section" aria-label={t.sessions}>
      <Title order={2} size="h4">
        {t.sessions}
      </Title>
      <ListTable
        list={{ ...whole, items: data?.data ?? [], error, isPending }}
        columns={columns}
        empty=""
        label={t.sessions}
      />
    </Stack>
  )
}

const TOKENS = {
  title: t.tokens,
  hint: t.tokensHint,
  new: t.newToken,
  none: t.noTokens,
  revokeTitle: t.revokeTokenTitle,
  revokeHint: t.revokeTokenHint,
}

export default function Account({ me }: { me: Me }) {
  return (
    <Screen title={t.title}>
      <Text>{me.member?.email ?? me.kind.toLowerCase()}</Text>
      {me.member && <Passkeys />}
      {me.member && me.permissions.includes('credentials.write') && (
        <CredentialList path={`/members/${me.member.id}/access-tokens`} own={me.permissions} texts={TOKENS} />
      )}
      <Sessions />
    </Screen>
  )
}
