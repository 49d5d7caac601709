/**
 * The screens of the console with their paths. Each screen has a separate script, which is loaded when the screen opens or the browser is
 * idle.
 */

import type { Me } from '@keyward/contract/management/sign-in'
import { type ComponentType, lazy, useEffect, useState } from 'react'
import { Redirect, Route, Switch } from 'wouter'

import { Screen } from '../parts/page-header.tsx'
import { text } from '../text.ts'

/** Functions that load the scripts of the screens. */
const loads: (() => Promise<unknown>)[] = []

/** Returns the component of a screen. React shows it at once if its script is loaded. Otherwise React shows a fallback for at least 300 ms. */
function screen<Props extends object>(load: () => Promise<{ default: ComponentType<Props> }>) {
  let loaded: ComponentType<Props> | null = null
  const loadOnce = async () => {
    const script = await load()
    loaded = script.default
    return script
  }
  loads.push(loadOnce)
  const Lazy = lazy(loadOnce)
  return function LoadedScreen(props: Props) {
    // The component does not change while the screen is shown, so that the screen keeps its state.
    const [Shown] = useState<ComponentType<Props>>(() => loaded ?? Lazy)
    return <Shown {...props} />
  }
}

const Overview = screen(() => import('../pages/overview.tsx'))
const Licenses = screen(() => import('../pages/licenses/licenses.tsx'))
const NewLicense = screen(() => import('../pages/licenses/new-license.tsx'))
const ImportLicenses = screen(() => import('../pages/licenses/import-licenses.tsx'))
const License = screen(() => import('../pages/licenses/license.tsx'))
const Customers = screen(() => import('../pages/customers.tsx'))
const Customer = screen(() => import('../pages/customer.tsx'))
const Merge = screen(() => import('../pages/merge.tsx'))
const Products = screen(() => import('../pages/products/products.tsx'))
const Product = screen(() => import('../pages/products/product.tsx'))
const Template = screen(() => import('../pages/templates/template.tsx'))
const Orders = screen(() => import('../pages/orders.tsx'))
const Rules = screen(() => import('../pages/rules/rules.tsx'))
const NewRule = screen(() => import('../pages/rules/new-rule.tsx'))
const ImportRules = screen(() => import('../pages/rules/import-rules.tsx'))
const RuleSets = screen(() => import('../pages/rules/sets.tsx'))
const RuleSet = screen(() => import('../pages/rules/set.tsx'))
const ReplaceRuleSet = screen(() => import('../pages/rules/replace-set.tsx'))
const Why = screen(() => import('../pages/why/why.tsx'))
const Alerts = screen(() => import('../pages/alerts.tsx'))
const Activity = screen(() => import('../pages/activity.tsx'))
const Audit = screen(() => import('../pages/audit.tsx'))
const Team = screen(() => import('../pages/team.tsx'))
const Credentials = screen(() => import('../pages/credentials.tsx'))
const Integrate = screen(() => import('../pages/integrate/integrate.tsx'))
const Webhooks = screen(() => import('../pages/webhooks/webhooks.tsx'))
const WebhookEndpoint = screen(() => import('../pages/webhooks/endpoint.tsx'))
const Events = screen(() => import('../pages/webhooks/events.tsx'))
const Account = screen(() => import('../pages/account.tsx'))
const Organizations = screen(() => import('../pages/organizations.tsx'))
const Validators = screen(() => import('../pages/validators.tsx'))

/** The time after which a script is loaded even if the browser is not idle. */
const IDLE_MS = 2_000

/** Loads the scripts of all screens one after the other while the browser is idle, so that screens appear without a wait. */
async function loadAll(): Promise<void> {
  // Safari has no `requestIdleCallback`.
  const idle = () =>
    new Promise<void>((resolve) => {
      if ('requestIdleCallback' in window) window.requestIdleCallback(() => resolve(), { timeout: IDLE_MS })
      else setTimeout(resolve, IDLE_MS / 10)
    })
  for (const load of loads.splice(0)) {
    await idle()
    await load()
  }
}

/** The routes of the console. `home` is the first section that the caller may see. */
export function Pages({ me, home }: { me: Me; home: string }) {
  useEffect(() => {
    // A script that cannot be loaded now is loaded when its screen opens.
    void loadAll().catch(() => undefined)
  }, [])
  return (
    <Switch>
      <Route path="/">{home === '/' ? <Overview me={me} /> : <Redirect to={home} replace />}</Route>
      <Route path="/invitation">
        <Redirect to="/account" replace />
      </Route>
      <Route path="/sign-in">
        <Redirect to={home} replace />
      </Route>
      <Route path="/licenses">
        <Licenses me={me} />
      </Route>
      <Route path="/licenses/new">
        <NewLicense me={me} />
      </Route>
      <Route path="/licenses/import" component={ImportLicenses} />
      <Route path="/licenses/:id">{({ id }) => <License key={id} id={id} me={me} />}</Route>
      <Route path="/customers">
        <Customers me={me} />
      </Route>
      <Route path="/customers/:id">{({ id }) => <Customer key={id} id={id} me={me} />}</Route>
      <Route path="/customers/:id/merge">{({ id }) => <Merge id={id} />}</Route>
      <Route path="/products">
        <Products me={me} />
      </Route>
      <Route path="/products/:id">{({ id }) => <Product key={id} id={id} me={me} />}</Route>
      <Route path="/orders" component={Orders} />
      <Route path="/templates/:id">{({ id }) => <Template key={id} id={id} me={me} />}</Route>
      <Route path="/rules">
        <Rules me={me} />
      </Route>
      <Route path="/rules/new" component={NewRule} />
      <Route path="/rules/import" component={ImportRules} />
      <Route path="/rules/sets">
        <RuleSets me={me} />
      </Route>
      <Route path="/rules/set">
        <RuleSet me={me} />
      </Route>
      <Route path="/rules/set/replace" component={ReplaceRuleSet} />
      <Route path="/why">
        <Why me={me} />
      </Route>
      <Route path="/alerts">
        <Alerts me={me} />
      </Route>
      <Route path="/activity">
        <Activity me={me} />
      </Route>
      <Route path="/audit" component={Audit} />
      <Route path="/team">
        <Team me={me} />
      </Route>
      <Route path="/credentials">
        <Credentials me={me} />
      </Route>
      <Route path="/integrate">
        <Integrate me={me} />
      </Route>
      <Route path="/webhooks">
        <Webhooks me={me} />
      </Route>
      <Route path="/webhooks/events" component={Events} />
      <Route path="/webhooks/:id">{({ id }) => <WebhookEndpoint key={id} id={id} me={me} />}</Route>
      <Route path="/account">
        <Account me={me} />
      </Route>
      <Route path="/organizations" component={Organizations} />
      <Route path="/validators" component={Validators} />
      <Route>
        <Screen title={text.notFound}>{null}</Screen>
      </Route>
    </Switch>
  )
}
