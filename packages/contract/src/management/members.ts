/** Members, the people of a vendor, and their personal access tokens (docs/api.md#a3). */

import { listQuery, page } from './common.ts'
import {
  accessTokenParams,
  createdToken,
  createMember,
  createToken,
  member,
  token,
  updateMember,
} from './credentials.ts'
import { operations } from './operations.ts'
import { createdMember, invitation } from './sign-in.ts'

export const members = operations({
  listMembers: { route: 'GET /members', needs: 'credentials.write', query: listQuery({}), returns: page(member) },
  createMember: {
    route: 'POST /members',
    needs: 'credentials.write',
    body: createMember,
    returns: createdMember,
    creates: true,
    secrets: ['invitation'],
  },
  readMember: { route: 'GET /members/{id}', needs: 'credentials.write', returns: member },
  updateMember: {
    route: 'PATCH /members/{id}',
    needs: 'credentials.write',
    body: updateMember,
    returns: member,
  },
  deleteMember: { route: 'DELETE /members/{id}', needs: 'credentials.write' },
  createInvitation: {
    route: 'POST /members/{id}/invitation',
    needs: 'credentials.write',
    returns: invitation,
    secrets: ['secret', 'path'],
  },
  listAccessTokens: {
    route: 'GET /members/{id}/access-tokens',
    needs: 'credentials.write',
    query: listQuery({}),
    returns: page(token),
  },
  createAccessToken: {
    route: 'POST /members/{id}/access-tokens',
    needs: 'credentials.write',
    body: createToken,
    returns: createdToken,
    creates: true,
    secrets: ['secret'],
  },
  readAccessToken: {
    route: 'GET /members/{id}/access-tokens/{tokenId}',
    needs: 'credentials.write',
    params: accessTokenParams,
    returns: token,
  },
  revokeAccessToken: {
    route: 'DELETE /members/{id}/access-tokens/{tokenId}',
    needs: 'credentials.write',
    params: accessTokenParams,
  },
})
