import { createLicense, email as emailAddress, licenses } from '@keyward/contract'
import { products } from '@keyward/contract/management/products'
import { Button, Card, Grid, Group, NumberInput, Stack, Text, TextInput, Title } from '@mantine/core'
import { type FormEvent, useState } from 'react'
import { Link, useLocation } from 'wouter'

import { call } from '../../api/client.ts'
import { useChange, useRead } from '../../api/hooks.ts'
import { checkInput } from '../../api/input.ts'
import { CustomerField, customerWith, ProductField } from '../../parts/choose.tsx'
import { type EntitlementRow, EntitlementsField, entitlementsOf, hasProblem } from '../../parts/entitlements-field.tsx'
import { fieldErrors } from '../../parts/form.tsx'
import { Screen } from '../../parts/page-header.tsx'
import { Copyable } from '../../parts/parts.tsx'
import { ErrorMessage } from '../../parts/states.tsx'
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

/** The input of the form, in which the customer is an e-mail address. */
const newLicense = createLicense.omit({ customerId: true }).extend({ email: emailAddress })

/**
 * Creates `count` licenses and returns their keys. For a single license, also returns the id. All fields are checked first, because a
 * rejected license would leave a new customer behind.
 */
async function createLicenses(draft: unknown, count: number): Promise<{ keys: string[]; id?: string }> {
  checkInput(newLicense, draft)
  const { email, ...terms } = draft
  const body = { ...terms, customerId: await customerWith(email) }
  if (count === 1) {
    const { key, id } = await call(licenses.createLicense, { body })
    return { keys: [key], id }
  }
  const created = await call(licenses.importLicenses, {
    body: { licenses: Array.from({ length: count }, () => body) },
  })
  return { keys: created.licenses.map(({ key }) => key) }
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
  const defaults = useRead(products.readProduct, productId === null ? null : { params: { id: productId } })
  const many = Number(count) > 1 ? Math.min(Number(count), MAX_MANY) : 1
  const create = useChange(
    () =>
      createLicenses(
        {
          // The message of an absent member states that the field is required.
          productId: productId ?? undefined,
          email: email.trim() === '' ? undefined : email.trim(),
          policy: bodyOf(policy),
          entitlements: entitlementsOf(rows),
          ...(many === 1 && key !== '' && { key }),
        },
        many,
      ),
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
