/**
 * Four steps from nothing to the first check of an app: the client, an API key, code with the values of this installation, and the check
 * itself, which appears when a validator has recorded it.
 */

import { apiKeys, licenses } from '@keyward/contract'
import { dryRuns } from '@keyward/contract/dry-run'
import { activity } from '@keyward/contract/management/activity'
import { products as allProducts } from '@keyward/contract/management/products'
import { signingKeys } from '@keyward/contract/management/signing-keys'
import { oneLine } from '@keyward/contract/text'
import { Button, Code, SegmentedControl } from '@mantine/core'
import { useState } from 'react'

import { call } from '../../api/client.ts'
import { type ItemOf, useCall, useChange, useList, useRead } from '../../api/hooks.ts'
import { useMay } from '../../api/me.ts'
import { useName } from '../../api/names.ts'
import { ProductField } from '../../parts/choose.tsx'
import { LicenseKey } from '../../parts/name.tsx'
import { Screen } from '../../parts/page-header.tsx'
import { Ago, CodeBadge, CopyIcon } from '../../parts/parts.tsx'
import { SearchField } from '../../parts/search-field.tsx'
import { ErrorMessage } from '../../parts/states.tsx'
import { Step } from '../../parts/step.tsx'
import { useUrlFilters } from '../../parts/url.ts'
import { text } from '../../text.ts'
import { highlight } from './highlight.tsx'
import { type Language, LANGUAGES, type Values } from './snippets.ts'
import { checkLikeApp, type Outcome } from './test-check.ts'
const MACHINE = 'console-test'
const REFRESH_MS = 2_000
type Check = ItemOf<typeof activity.listActivity>

function isLanguage(value: string | null): value is Language {
  return value !== null && value in LANGUAGES
}

function CodeBlock({ label, title, code }: { label: string; title: string; code: string }) {
  return (
    <div className="code">
      <div className="code-head">
        {title}
        <CopyIcon value={code} label="Copy the code" />
      </div>
      <pre tabIndex={0} role="region" aria-label={label}>
        {highlight(code)}
      </pre>
    </div>
  )
}

/** Creates an API key for the product. The page keeps the secret until the person leaves the page. */
function KeyStep({
  productId,
  secret,
  canCreate,
  onCreated,
}: {
  productId: string
  secret: string
  canCreate: boolean
  onCreated: (secret: string) => void
}) {
  const name = useName(productId === '' ? null : productId)
  const create = useCall(apiKeys.createApiKey, {
    done: 'Created the API key.',
    onDone: (created) => created.secret !== undefined && onCreated(created.secret),
  })
  return (
    <Step
      title="API key"
      state={secret === '' ? 'open' : 'done'}
      action={
        canCreate && (
          <Button
            variant="default"
            size="xs"
            onClick={() => create.mutate({ body: { name: `App of ${name}`, productId } })}
            loading={create.isPending}
            disabled={name === ''}
          >
            Create an API key
          </Button>
        )
      }
    >
      <p>
        {secret === ''
          ? 'An app needs an API key. The secrets of existing keys are not stored.'
          : 'The code below contains the key. It is not shown again after you leave this page.'}
      </p>
    </Step>
  )
}

/** Sends a check as an app would. If there is no API key or no verdict, requests a dry run, which records nothing. */
async function testCheck(apiKey: string, licenseKey: string): Promise<Outcome> {
  const real = apiKey === '' ? null : await checkLikeApp(apiKey, licenseKey, MACHINE)
  if (real !== null) return real
  const decided = await call(dryRuns.evaluateAccessRules, { body: { licenseKey, machineId: MACHINE } })
  return { code: decided.code, body: null, isReal: false }
}

/** Waits for a check that is made while the page is open. */
function CheckStep({ apiKey, licenseKey }: { apiKey: string; licenseKey: string }) {
  const [openedMs] = useState(() => Date.now())
  const [arrived, setArrived] = useState<Check | null>(null)
  const list = useList(activity.listActivity, { query: { type: 'CHECK' } }, arrived === null ? REFRESH_MS : undefined)
  const found = list.items.find(({ lastAt }) => Date.parse(lastAt) >= openedMs)
  if (found && arrived === null) setArrived(found)
  const send = useChange(() => testCheck(apiKey, licenseKey), { quiet: true })
  return (
    <Step
      title={arrived ? 'Your first check has arrived' : 'Waiting for your first check…'}
      state={arrived ? 'done' : 'now'}
      action={
        <Button
          variant="default"
          size="xs"
          onClick={() => send.mutate(undefined)}
          loading={send.isPending}
          disabled={licenseKey === ''}
        >
          Send a test check
        </Button>
      }
    >
      {arrived ? (
        <p role="status">
          {arrived.code !== undefined && <CodeBadge code={arrived.code} />} for the license{' '}
          <LicenseKey id={arrived.licenseId} /> on the machine{' '}
          <span className="mono">{oneLine(arrived.machineId ?? 'without an id')}</span>, <Ago at={arrived.lastAt} />
        </p>
      ) : (
        <p>
          {licenseKey === ''
            ? 'Choose a license first.'
            : apiKey === ''
              ? 'Without an API key, the button asks what the decision would be. No check is made, nothing is counted, and no slot is taken.'
              : 'Run your app. This step turns green by itself, and shows what your app sent.'}
        </p>
      )}
      <ErrorMessage error={send.error} />
      {send.data && (
        <div role="status">
          <b>{`${text.codes[send.data.code]} (${send.data.code})`}</b>
          <p>
            {send.data.isReal
              ? 'A validator made this check.'
              : apiKey === ''
                ? 'This is the decision. No check was made.'
                : 'The validation API did not respond at the address of the console, so this is the decision alone. No check was made. Your app needs the address of the validation API.'}
          </p>
          {send.data.body !== null && (
            <Code block className="snippet">
              {send.data.body}
            </Code>
          )}
        </div>
      )}
    </Step>
  )
}

/** Returns the chosen license, or else the newest active license of the product. */
function useLicense(productId: string, chosen: string | null): string | null {
  const query = { productId, status: 'active', limit: 1 } as const
  const newest = useRead(licenses.listLicenses, productId === '' ? null : { query })
  return chosen ?? newest.data?.data[0]?.id ?? null
}

export default function Integrate() {
  const may = useMay()
  const [filters, setFilters] = useUrlFilters({ product: null, language: null })
  const [chosen, setChosen] = useState<string | null>(null)
  const [apiKey, setApiKey] = useState('')
  const products = useRead(allProducts.listProducts, {})
  const keys = useRead(signingKeys.listSigningKeys, may('signing-keys.write') ? {} : null)
  const productId = filters.product ?? products.data?.data[0]?.id ?? ''
  const licenseId = useLicense(productId, chosen)
  const licenseKey = useName(licenseId)
  const current = keys.data?.data.find(({ retiredAt, withdrawnAt }) => retiredAt === null && withdrawnAt === null)
  const language = isLanguage(filters.language) ? filters.language : 'curl'
  const { label, install, file, run, code } = LANGUAGES[language]
  const values: Values = {
    baseUrl: window.location.origin,
    apiKey: apiKey === '' ? 'kwk_…' : apiKey,
    licenseKey: licenseKey === '' ? 'XXXX-XXXX-XXXX-XXXX' : licenseKey,
    productId,
    keyId: current?.keyId ?? '…',
    publicKey: current?.publicKey ?? '…',
  }
  /** Chooses a license and its product, because an API key finds only licenses of its product. */
  const choose = async (id: string | null) => {
    if (id !== null) {
      const one = await call(licenses.readLicense, { params: { id } })
      if (one.productId !== productId) setApiKey('')
      setFilters({ product: one.productId })
    }
    setChosen(id)
  }
  const chooseProduct = (id: string | null) => {
    setFilters({ product: id })
    setChosen(null)
    setApiKey('')
  }
  return (
    <Screen
      title="Integrate"
      meta={[
        'From nothing to the first check of your app. The code contains the address of this installation and your public key.',
      ]}
      width="middle"
    >
      <div className="card">
        <ol className="flow">
          <Step
            title="Install the client"
            state="open"
            action={
              <SegmentedControl
                aria-label="Language"
                data={Object.entries(LANGUAGES).map(([value, one]) => ({ value, label: one.label }))}
                value={language}
                onChange={(value) => setFilters({ language: value })}
                className="languages"
              />
            }
          >
            {install === null ? (
              <p>No client is needed. The command makes a real check, which takes a slot for my-machine.</p>
            ) : (
              <CodeBlock label="Install the client" title="in your project" code={install} />
            )}
          </Step>
          <KeyStep
            productId={productId}
            secret={apiKey}
            canCreate={may('credentials.write') && productId !== ''}
            onCreated={setApiKey}
          />
          <Step title="Code" state="open">
            <div className="flow-fields">
              <ProductField value={productId === '' ? null : productId} onChange={chooseProduct} />
              <SearchField
                kind="license"
                label="License to check"
                value={licenseId}
                onChange={(id) => void choose(id)}
              />
            </div>
            <CodeBlock label={label} title={file} code={code(values)} />
            {run !== null && <p>{`Run it with: ${run}`}</p>}
          </Step>
          <CheckStep apiKey={apiKey} licenseKey={licenseKey} />
        </ol>
      </div>
    </Screen>
  )
}
