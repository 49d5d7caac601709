import { importedLicenses, license } from '@keyward/contract'
import { product } from '@keyward/contract/management/products'
import { Button, Card, Grid, Group, NumberInput, Stack, Text, TextInput, Title } from '@mantine/core'
import { type FormEvent, useState } from 'react'
import { Link, useLocation } from 'wouter'

import { call } from '../../api/client.ts'
import { useChange, useRead } from '../../api/hooks.ts'
import { CustomerField, customerWith, ProductField } from '../../parts/choose.tsx'
import { type EntitlementRow, EntitlementsField, entitlementsOf, hasProblem } from '../../parts/entitlements-field.tsx'
import { fieldErrors } from '../../parts/form.tsx'
import { Copyable, ErrorMessage, Screen } from '../../parts/parts.tsx'
import { useUrlParameters } from '../../parts/url.ts'
import { text } from '../../text.ts'
import { bodyOf, NEW_POLICY, PolicyFields } from './policy-fields.tsx'

const t = text.licenses
const MAX_MANY = 1_000

/** Shows the keys after more than one license was created. */
function Keys({ keys }: { keys: readonly string[] }) {
  return (
    <Card withBorder component="section" aria-label={t.keysTitle(keys.length)}>
      <Stack>
        <Title order={2} size="h4">
          {t.keysTitle(keys.length)}
        </Title>
        <Text size="sm" c="dimmed">
          {t.keysHint}
        </Text>
        <div className="keys">
          {keys.map((key) => (
            <Copyable key={key} value={key} />
          ))}
        </div>
        <Group>
          <Button component={Link} href="/licenses">
            {t.toLicenses}
          </Button>
        </Group>
      </Stack>
    </Card>
  )
}

/** Creates `count` licenses and returns their keys. For a single license, also returns the id. */
async function createLicenses(body: object, key: string, count: number): Promise<{ keys: string[]; id?: string }> {
  if (count > 1) {
    const rows = { licenses: Array.from({ length: count }, () => body) }
    const created = await call({ method: 'POST', path: '/licenses/import', body: rows, waits: true }, importedLicenses)
    return { keys: created.licenses.map((one) => one.key) }
  }
  const one = { ...body, ...(key !== '' && { key }) }
  const created = await call({ method: 'POST', path: '/licenses', body: one, waits: true }, license)
  return { keys: [created.key], id: created.id }
}

export default function NewLicense() {
  const given = useUrlParameters()
  const [, navigate] = useLocation()
  const [productId, setProductId] = useState<string | null>(given.get('product'))
  const [email, setEmail] = useState(given.get('email') ?? '')
  const [policy, setPolicy] = useState(NEW_POLICY)
  const [rows, setRows] = useState<EntitlementRow[]>([])
  const [key, setKey] = useState('')
  const [count, setCount] = useState<number | string>(1)
  const [keys, setKeys] = useState<readonly string[]>([])
  const defaults = useRead(productId === null ? null : `/products/${productId}`, product)
  const many = Number(count) > 1 ? Math.min(Number(count), MAX_MANY) : 1
  const create = useChange(
    async () => {
      const customerId = await customerWith(email.trim())
      const body = { productId, customerId, policy: bodyOf(policy), entitlements: entitlementsOf(rows) }
      return createLicenses(body, key, many)
    },
    {
      done: many === 1 ? t.created : t.createdMany(many),
      quiet: true,
      onDone: (created) => (created.id === undefined ? setKeys(created.keys) : navigate(`/licenses/${created.id}`)),
    },
  )
  const submit = (event: FormEvent) => {
    event.preventDefault()
    create.mutate(undefined)
  }
  const all = fieldErrors(create.error)
  // All new licenses have the same fields, so the errors are shown without the license's position.
  const errors = Object.fromEntries(
    Object.entries(all).map(([pointer, detail]) => [pointer.replace(/^licenses\/\d+\//, ''), detail]),
  )
  if (keys.length > 0)
    return (
      <Screen title={t.new}>
        <Keys keys={keys} />
      </Screen>
    )
  return (
    <Screen title={t.new}>
      <form onSubmit={submit} noValidate>
        <Grid gap="lg">
          <Grid.Col span={{ base: 12, md: 7 }}>
            <Stack>
              <ProductField value={productId} onChange={setProductId} error={errors['productId']} />
              <CustomerField value={email} onChange={setEmail} error={errors['email']} />
              <PolicyFields value={policy} onChange={(part) => setPolicy({ ...policy, ...part })} errors={errors} />
            </Stack>
          </Grid.Col>
          <Grid.Col span={{ base: 12, md: 5 }}>
            <Stack>
              <Card withBorder>
                <EntitlementsField
                  rows={rows}
                  onChange={setRows}
                  defaults={defaults.data?.entitlements ?? {}}
                  errors={errors}
                />
              </Card>
              <Card withBorder component="section" aria-label={t.more}>
                <Stack>
                  <NumberInput
                    label={t.howMany}
                    description={t.howManyHint}
                    value={count}
                    onChange={setCount}
                    min={1}
                    max={MAX_MANY}
                    allowDecimal={false}
                  />
                  {many === 1 && (
                    <TextInput
                      label={t.ownKey}
                      description={t.ownKeyHint}
                      value={key}
                      onChange={(event) => setKey(event.currentTarget.value)}
                      error={errors['key']}
                      classNames={{ input: 'mono' }}
                      spellCheck={false}
                    />
                  )}
                </Stack>
              </Card>
              {Object.keys(errors).length === 0 && <ErrorMessage error={create.error} />}
              <Group>
                <Button type="submit" loading={create.isPending} disabled={hasProblem(rows)}>
                  {many === 1 ? t.create : t.createMany(many)}
                </Button>
                <Button variant="default" component={Link} href="/licenses">
                  {text.cancel}
                </Button>
              </Group>
            </Stack>
          </Grid.Col>
        </Grid>
      </form>
    </Screen>
  )
}
