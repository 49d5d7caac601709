/** Shows code to copy into an app, with the address of this installation, the public key and an API key. Also sends a test check. */

import { apiKeys } from '@keyward/contract'
import { dryRuns } from '@keyward/contract/dry-run'
import { products as allProducts } from '@keyward/contract/management/products'
import type { Me } from '@keyward/contract/management/sign-in'
import { signingKeys } from '@keyward/contract/management/signing-keys'
import {
  Button,
  Card,
  Code,
  CopyButton,
  Group,
  SegmentedControl,
  SimpleGrid,
  Stack,
  Text,
  TextInput,
  Title,
} from '@mantine/core'
import { useState } from 'react'

import { call } from '../../api/client.ts'
import { useCall, useChange, useRead } from '../../api/hooks.ts'
import { useName } from '../../api/names.ts'
import { ProductField } from '../../parts/choose.tsx'
import { Screen } from '../../parts/page-header.tsx'
import { SearchField } from '../../parts/search-field.tsx'
import { ErrorMessage } from '../../parts/states.tsx'
import { useUrlFilters } from '../../parts/url.ts'
import { text } from '../../text.ts'
import { type Language, LANGUAGES, type Values } from './snippets.ts'
import { checkLikeApp, type Outcome } from './test-check.ts'

const t = text.integrate

function isLanguage(value: string): value is Language {
  return value in LANGUAGES
}

/** Creates an API key for the product. The page keeps the secret until the person leaves the page. */
function NewKey({ productId, onCreated }: { productId: string; onCreated: (secret: string) => void }) {
  const name = useName(productId)
  const create = useCall(apiKeys.createApiKey, {
    done: t.keyCreated,
    onDone: ({ secret }) => secret !== undefined && onCreated(secret),
  })
  return (
    <Button
      variant="default"
      onClick={() => create.mutate({ body: { name: t.keyName(name), productId } })}
      loading={create.isPending}
      disabled={name === ''}
    >
      {t.createKey}
    </Button>
  )
}

function Snippet({ language, values }: { language: Language; values: Values }) {
  const code = LANGUAGES[language].code(values)
  return (
    <Stack gap="xs">
      <Code block tabIndex={0} role="region" aria-label={LANGUAGES[language].label} className="snippet">
        {code}
      </Code>
      <Group justify="space-between" align="start">
        <Text size="sm" c="dimmed" maw={560}>
          {language === 'curl' ? t.curlHint : t.clientHint}
        </Text>
        <CopyButton value={code}>
          {({ copied, copy }) => (
            <Button size="xs" variant="default" onClick={copy}>
              {copied ? text.copied : t.copy}
            </Button>
          )}
        </CopyButton>
      </Group>
    </Stack>
  )
}

/** Sends a check as an app would. If there is no API key or no verdict, requests a dry run, which records nothing. */
function TestCheck({ apiKey, licenseKey }: { apiKey: string; licenseKey: string }) {
  const [machineId, setMachineId] = useState('console-test')
  const send = useChange(
    async (): Promise<Outcome> => {
      const real = apiKey === '' ? null : await checkLikeApp(apiKey, licenseKey, machineId)
      if (real !== null) return real
      const body = { licenseKey, machineId }
      const decided = await call(dryRuns.evaluateAccessRules, { body })
      return { code: decided.code, body: null, isReal: false }
    },
    { quiet: true },
  )
  return (
    <Card withBorder component="section" aria-label={t.test}>
      <Stack gap="sm">
        <Title order={2} size="h4">
          {t.test}
        </Title>
        <Text size="sm" c="dimmed">
          {apiKey === '' ? t.evaluates : t.checks}
        </Text>
        <Group align="end">
          <TextInput
            label={t.machineId}
            value={machineId}
            onChange={(event) => setMachineId(event.currentTarget.value)}
          />
          <Button onClick={() => send.mutate(undefined)} loading={send.isPending} disabled={licenseKey === ''}>
            {t.send}
          </Button>
        </Group>
        {licenseKey === '' && <Text size="sm">{t.needsLicense}</Text>}
        <ErrorMessage error={send.error} />
        {send.data && (
          <div role="status">
            <Text fw={600}>{t.verdict(text.codes[send.data.code], send.data.code)}</Text>
            <Text size="sm" c="dimmed">
              {send.data.isReal ? t.wasReal : apiKey === '' ? t.wasEvaluated : t.unreachable}
            </Text>
            {send.data.body !== null && (
              <Code block mt="xs" className="snippet">
                {send.data.body}
              </Code>
            )}
          </div>
        )}
      </Stack>
    </Card>
  )
}

export default function Integrate({ me }: { me: Me }) {
  const [filters, setFilters] = useUrlFilters({ product: null, language: null })
  const [licenseId, setLicenseId] = useState<string | null>(null)
  const [apiKey, setApiKey] = useState('')
  const products = useRead(allProducts.listProducts, {})
  const canSeeKeys = me.permissions.includes('signing-keys.write')
  const keys = useRead(signingKeys.listSigningKeys, canSeeKeys ? {} : null)
  const productId = filters.product ?? products.data?.data[0]?.id ?? ''
  const licenseKey = useName(licenseId)
  const current = keys.data?.data.find(({ retiredAt, withdrawnAt }) => retiredAt === null && withdrawnAt === null)
  const language = filters.language !== null && isLanguage(filters.language) ? filters.language : 'curl'
  const values: Values = {
    baseUrl: window.location.origin,
    apiKey: apiKey === '' ? 'kwk_…' : apiKey,
    licenseKey: licenseKey === '' ? 'XXXX-XXXX-XXXX-XXXX' : licenseKey,
    productId,
    keyId: current?.keyId ?? '…',
    publicKey: current?.publicKey ?? '…',
  }
  return (
    <Screen title={t.title}>
      <Text c="dimmed">{t.intro}</Text>
      <SimpleGrid cols={{ base: 1, sm: 3 }}>
        <ProductField
          label={text.licenses.product}
          value={productId === '' ? null : productId}
          onChange={(id) => setFilters({ product: id })}
        />
        <SearchField
          kind="license"
          label={t.license}
          description={t.licenseHint}
          value={licenseId}
          onChange={setLicenseId}
        />
        <Stack gap={4} justify="end">
          {me.permissions.includes('credentials.write') && productId !== '' && (
            <NewKey productId={productId} onCreated={setApiKey} />
          )}
          <Text size="xs" c="dimmed">
            {apiKey === '' ? t.keyHint : t.keyShown}
          </Text>
        </Stack>
      </SimpleGrid>
      <SegmentedControl
        aria-label={t.language}
        data={Object.entries(LANGUAGES).map(([value, { label }]) => ({ value, label }))}
        value={language}
        onChange={(value) => setFilters({ language: value })}
        className="languages"
      />
      <Snippet language={language} values={values} />
      <TestCheck apiKey={apiKey} licenseKey={licenseKey} />
    </Screen>
  )
}
