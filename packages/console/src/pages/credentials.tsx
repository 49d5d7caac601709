import { apiKeys, tokens } from '@keyward/contract'
import { signingKeys } from '@keyward/contract/management/signing-keys'
import { Button, Group } from '@mantine/core'

import { type ItemOf, useCall, useList } from '../api/hooks.ts'
import { useMay } from '../api/me.ts'
import { ConfirmButton } from '../parts/confirm.tsx'
import { CredentialList } from '../parts/credential-list.tsx'
import { Screen } from '../parts/page-header.tsx'
import { Copyable, DotBadge, Part, When } from '../parts/parts.tsx'
import { type Column, ListTable } from '../parts/table.tsx'
import { text } from '../text.ts'

type SigningKey = ItemOf<typeof signingKeys.listSigningKeys>

function stateOf({ withdrawnAt, retiredAt, preparedAt }: SigningKey): { label: string; color: string } {
  if (withdrawnAt !== null) return { label: 'Withdrawn', color: 'red' }
  if (preparedAt !== null) return { label: 'Prepared', color: 'blue' }
  return retiredAt === null ? { label: 'Signs new files', color: 'teal' } : { label: 'Retired', color: 'gray' }
}

function SigningKeys() {
  const list = useList(signingKeys.listSigningKeys, {})
  const prepare = useCall(signingKeys.prepareSigningKey, {
    done: 'Ship the prepared public key in the next release of your app. Rotate when your customers have that release.',
  })
  const isPrepared = list.items.some((key) => key.preparedAt !== null && key.withdrawnAt === null)
  const rotate = useCall(signingKeys.rotateSigningKey, {
    done: 'The new key signs all new files. Ship its public key in the next release of your app.',
  })
  const withdraw = useCall(signingKeys.withdrawSigningKey, { done: 'Withdrew the key.' })
  const columns: readonly Column<SigningKey>[] = [
    { title: 'Key id', cell: ({ keyId }) => <span className="mono">{keyId}</span> },
    {
      title: 'State',
      cell: (key) => <DotBadge color={stateOf(key).color}>{stateOf(key).label}</DotBadge>,
    },
    { title: 'Public key', cell: ({ publicKey }) => <Copyable value={publicKey} /> },
    { title: 'Created', cell: ({ createdAt }) => <When at={createdAt} /> },
    {
      title: text.actions,
      cell: (key) =>
        key.retiredAt !== null && key.withdrawnAt === null ? (
          <ConfirmButton
            size="xs"
            label="Withdraw"
            title="Withdraw this key?"
            object={<span className="mono">{key.keyId}</span>}
            consequence="Apps that request the public keys stop trusting files of this key. Withdraw a key whose private key may have leaked."
            onConfirm={() => withdraw.mutateAsync({ params: { id: key.id } })}
          />
        ) : null,
    },
  ]
  return (
    <Part
      title="Signing keys"
      hint="Signing keys sign the offline files. An app verifies its file with the public key that you ship in the app."
      action={
        <Group>
          {!isPrepared && (
            <Button variant="default" onClick={() => prepare.mutate({})} loading={prepare.isPending}>
              Prepare the next key
            </Button>
          )}
          <ConfirmButton
            label="Rotate"
            title="Sign new files with a new key?"
            consequence={
              isPrepared
                ? 'The prepared key signs all new files. Apps that contain its public key accept them. Existing files stay valid.'
                : 'No key is prepared. Existing files stay valid. Apps without the new public key reject new files, so ship it in the next release. Withdraw the old key only after that.'
            }
            isDangerous={!isPrepared}
            onConfirm={() => rotate.mutateAsync({})}
          />
        </Group>
      }
    >
      <ListTable list={list} columns={columns} empty="" label="Signing keys" />
    </Part>
  )
}

function ApiKeys() {
  const list = useList(apiKeys.listApiKeys, {})
  const create = useCall(apiKeys.createApiKey, { quiet: true })
  const revoke = useCall(apiKeys.revokeApiKey, { done: 'Revoked the credential.' })
  return (
    <CredentialList
      isApiKey
      title="API keys"
      hint="An app sends its API key with every check. Anyone can extract the key from the app, so it permits nothing but checks."
      create="New API key"
      none="No API keys. An app needs one to make checks."
      revokeHint="Within a moment, checks with this key fail with 401. Apps that contain the key cannot check their license online."
      list={list}
      onCreate={({ name, productId }) => create.mutateAsync({ body: { name, productId } })}
      onRevoke={(id) => revoke.mutateAsync({ params: { id } })}
    />
  )
}

function Tokens() {
  const list = useList(tokens.listTokens, {})
  const create = useCall(tokens.createToken, { quiet: true })
  const revoke = useCall(tokens.revokeToken, { done: 'Revoked the credential.' })
  return (
    <CredentialList
      title="Management tokens"
      hint="For programs that manage licenses. A token permits only what you choose."
      create="New management token"
      none="No management tokens."
      revokeHint="Programs that use this token lose access at once."
      list={list}
      onCreate={({ name, permissions }) => create.mutateAsync({ body: { name, permissions } })}
      onRevoke={(id) => revoke.mutateAsync({ params: { id } })}
    />
  )
}

export default function CredentialsPage() {
  const may = useMay()
  return (
    <Screen title="API keys, tokens and signing keys">
      <ApiKeys />
      <Tokens />
      {may('signing-keys.write') && <SigningKeys />}
    </Screen>
  )
}
