/** Endpoints of what is recorded: activity, alerts, analytics, audit log. */
import {
  activityEntry,
  alert,
  analytics,
  analyticsQuery,
  auditEntry,
  idParams,
  listQuery,
  page,
} from '@keyward/contract'

import { countChecks } from '../analytics/count-checks.ts'
import { vendorEndpoint } from '../http/endpoint.ts'
import { acknowledgeAlert, listActivity, listAlerts, listAuditLog } from './store.ts'

const listed = { method: 'get', query: listQuery({}), status: 200 } as const

export const records = [
  vendorEndpoint(
    'licenses.read',
    {
      ...listed,
      path: '/licenses/{id}/activity',
      tag: 'Activity',
      operationId: 'listLicenseActivity',
      summary: 'List what happened to a license',
      description: 'Checks are gathered by code, machine and minute. Checks that an exclusion decided are left out.',
      params: idParams,
      answer: page(activityEntry),
    },
    ({ db, organizationId, params, query }) => listActivity(db, organizationId, params.id, query),
  ),
  vendorEndpoint(
    'licenses.read',
    {
      ...listed,
      path: '/activity',
      tag: 'Activity',
      operationId: 'listActivity',
      summary: 'List what happened to all licenses',
      answer: page(activityEntry),
    },
    ({ db, organizationId, query }) => listActivity(db, organizationId, null, query),
  ),
  vendorEndpoint(
    'licenses.read',
    {
      ...listed,
      path: '/alerts',
      tag: 'Alerts',
      operationId: 'listAlerts',
      summary: 'List alerts',
      answer: page(alert),
    },
    ({ db, organizationId, query }) => listAlerts(db, organizationId, query),
  ),
  vendorEndpoint(
    'licenses.write',
    {
      method: 'post',
      path: '/alerts/{id}/acknowledge',
      tag: 'Alerts',
      operationId: 'acknowledgeAlert',
      summary: 'Acknowledge an alert',
      description: 'The next refused check of the license opens a new one.',
      params: idParams,
      status: 200,
      answer: alert,
    },
    (call) => acknowledgeAlert(call, call.params.id),
  ),
  vendorEndpoint(
    'analytics.read',
    {
      method: 'get',
      path: '/analytics/checks',
      tag: 'Analytics',
      operationId: 'countChecks',
      summary: 'Count checks over time',
      query: analyticsQuery,
      status: 200,
      answer: analytics,
    },
    ({ db, organizationId, query }) => countChecks(db, organizationId, query),
  ),
  vendorEndpoint(
    'audit.read',
    {
      ...listed,
      path: '/audit-log',
      tag: 'Audit log',
      operationId: 'listAuditLog',
      summary: 'List who changed what',
      answer: page(auditEntry),
    },
    ({ db, organizationId, query }) => listAuditLog(db, organizationId, query),
  ),
]
