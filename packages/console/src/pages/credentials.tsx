/** API keys, management tokens and signing keys. */

import { ALL_PERMISSIONS, apiKey, createdApiKey, createdToken, token } from '@keyward/contract'
import { type Me } from '@keyward/contract/management/sign-in'
import { signingKey } from '@keyward/contract/management/signing-keys'
import { Badge, Button, Group, Modal, Stack, Text, TextInput, Title } from '@mantine/core'
import { type ReactNode, useState } from 'react'
import type { z } from 'zod'

import { call, callWithoutResponse } from '../api/client.ts'
import { useChange, useList } from '../api/hooks.ts'
import { FormWindow } from '../parts/form.tsx'
import { ConfirmButton, Copyable, Screen, When } from '../parts/parts.tsx'
import { type Column, type ListState, ListTable } from '../parts/table.tsx'
import { text } from '../text.ts'

const t = text.credentials
/** The fields that the lists of API keys and tokens share. */
type Shown = Pick<z.infer<typeof apiKey>, 'id' | 'name' | 'prefix' | 'lastUsedAt' | 'createdAt'>
type SigningKey = z.infer<typeof signingKey>

function Part({
  title,
  hint,
  action,
  children,
}: {
  title: string
  hint: string
  action: ReactNode
  children: ReactNode
}) {
  return (
    <Stack gap="sm" component="section" aria-label={title}>
      <Group justify="space-between">
        <Title order={2} size="h4">
          {title}
        </Title>
        {action}
      </Group>
      <Text size="sm" c="dimmed">
        {hint}
      </Text>
      {children}
    </Stack>
  )
}

function SecretWindow({ secret, onClose }: { secret: string | null; onClose: () => void }) {
  return (
    <Modal
      opened={secret !== null}
      onClose={onClose}
      title={t.secret}
      size="lg"
      closeButtonProps={{ 'aria-label': text.close }}
    >
      <Copyable value={secret ?? ''} />
    </Modal>
  )
}

/** A list of credentials with a window that creates one. */
function Credentials({
  path,
  isApiKey,
  own,
}: {
  path: '/api-keys' | '/tokens'
  isApiKey: boolean
  own: readonly string[]
}) {
  const list: ListState<Shown> = useList(path, isApiKey ? apiKey : token)
  const [name, setName] = useState<string | null>(null)
  const [secret, setSecret] = useState<string | null>(null)
  const create = useChange(
    (): Promise<{ secret?: string | undefined }> => {
      const permissions = ALL_PERMISSIONS.filter((one) => own.includes(one))
      return isApiKey
        ? call({ method: 'POST', path, body: { name }, waits: true }, createdApiKey)
        : call({ method: 'POST', path, body: { name, permissions } }, createdToken)
    },
    { onDone: (created) => setSecret(created.secret ?? null), quiet: true },
  )
  const revoke = useChange((id: string) => callWithoutResponse({ method: 'DELETE', path: `${path}/${id}` }), {
    done: t.revoked,
  })
  const columns: readonly Column<Shown>[] = [
    { title: t.nameOf, cell: (one) => one.name },
    { title: t.prefix, cell: ({ prefix }) => <span className="mono">{prefix}…</span> },
    { title: t.lastUsed, cell: ({ lastUsedAt }) => <When at={lastUsedAt} /> },
    { title: text.licenses.createdOn, cell: ({ createdAt }) => <When at={createdAt} /> },
    {
      title: text.actions,
      cell: ({ id }) => (
        <ConfirmButton
          size="xs"
          label={t.revoke}
          title={isApiKey ? t.revokeKeyTitle : t.revokeTokenTitle}
          consequence={isApiKey ? t.revokeKeyHint : t.revokeTokenHint}
          onConfirm={() => revoke.mutateAsync(id)}
        />
      ),
    },
  ]
  const label = isApiKey ? t.newApiKey : t.newToken
  return (
    <Part
      title={isApiKey ? t.apiKeys : t.tokens}
      hint={isApiKey ? t.apiKeysHint : t.tokensHint}
      action={
        <Button variant="default" onClick={() => setName('')}>
          {label}
        </Button>
      }
    >
      <ListTable
        list={list}
        columns={columns}
        empty={isApiKey ? t.noKeys : t.noTokens}
        label={isApiKey ? t.apiKeys : t.tokens}
      />
      <FormWindow
        title={label}
        action={label}
        opened={name !== null}
        onClose={() => setName(null)}
        onSubmit={() => create.mutateAsync(undefined)}
      >
        {(errors) => (
          <TextInput
            label={t.nameOf}
            description={t.nameHint}
            value={name ?? ''}
            onChange={(event) => setName(event.currentTarget.value)}
            error={errors['name']}
            required
            data-autofocus
          />
        )}
      </FormWindow>
      <SecretWindow secret={secret} onClose={() => setSecret(null)} />
    </Part>
  )
}

function stateOf({ withdrawnAt, retiredAt, preparedAt }: SigningKey): { label: string; color: string } {
  if (withdrawnAt !== null) return { label: t.withdrawn, color: 'red' }
  if (preparedAt !== null) return { label: t.prepared, color: 'blue' }
  return retiredAt === null ? { label: t.current, color: 'teal' } : { label: t.retired, color: 'gray' }
}

function SigningKeys() {
  const list = useList('/signing-keys', signingKey)
  const rotate = useChange(() => call({ method: 'POST', path: '/signing-keys/rotate', waits: true }, signingKey), {
    done: t.rotated,
  })
  const withdraw = useChange((id: string) =>
    call({ method: 'POST', path: `/signing-keys/${id}/withdraw`, waits: true }, signingKey),
  )
  const columns: readonly Column<SigningKey>[] = [
    { title: t.keyId, cell: ({ keyId }) => <span className="mono">{keyId}</span> },
    {
      title: t.state,
      cell: (key) => (
        <Badge variant="dot" color={stateOf(key).color}>
          {stateOf(key).label}
        </Badge>
      ),
    },
    { title: t.publicKey, cell: ({ publicKey }) => <Copyable value={publicKey} /> },
    { title: text.licenses.createdOn, cell: ({ createdAt }) => <When at={createdAt} /> },
    {
      title: text.actions,
      cell: (key) =>
        key.retiredAt !== null && key.withdrawnAt === null ? (
          <ConfirmButton
            size="xs"
            label={t.withdraw}
            title={t.withdrawTitle}
            consequence={t.withdrawHint}
            onConfirm={() => withdraw.mutateAsync(key.id)}
          />
        ) : null,
    },
  ]
  return (
    <Part
      title={t.signingKeys}
      hint={t.signingKeysHint}
      action={
        <ConfirmButton
          label={t.rotate}
          title={t.rotateTitle}
          consequence={t.rotateHint}
          color="orange"
          onConfirm={() => rotate.mutateAsync(undefined)}
        />
      }
    >
      <ListTable list={list} columns={columns} empty="" label={t.signingKeys} />
    </Part>
  )
}

export default function CredentialsPage({ me }: { me: Me }) {
  return (
    <Screen title={t.title}>
      <Credentials path="/api-keys" isApiKey own={me.permissions} />
      <Credentials path="/tokens" isApiKey={false} own={me.permissions} />
      {me.permissions.includes('signing-keys.write') && <SigningKeys />}
    </Screen>
  )
}
