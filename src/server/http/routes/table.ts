// The route table. Router, validation, OpenAPI, the reference page and the attack matrix are made from it.

import { PAGE_ROUTES } from '../../page/routes.ts'
import { A2A_ROUTES } from '../protocols/a2a.ts'
import { AG_UI_ROUTES } from '../protocols/ag-ui.ts'
import { MCP_ROUTES } from '../protocols/mcp.ts'
import type { Route } from '../table/route.ts'
import { routesOf } from '../table/routes-of.ts'
import { ADMIN_ROUTES } from './admin.ts'
import { AI_SDK_ROUTES } from './ai-sdk.ts'
import { CONVERSATION_ROUTES } from './conversations.ts'
import { FEED_ROUTES } from './feed.ts'
import { METADATA_ROUTES } from './login.ts'
import { NODE_ROUTES } from './nodes.ts'
import { RUN_ROUTES } from './runs.ts'
import { SERVER_ROUTES } from './server.ts'

/** Every route of the server. A route that is not here does not exist. */
export const TABLE: readonly Route[] = [
  ...SERVER_ROUTES,
  ...METADATA_ROUTES,
  ...routesOf('agents'),
  ...RUN_ROUTES,
  ...CONVERSATION_ROUTES,
  ...routesOf('history'),
  ...routesOf('trees'),
  ...NODE_ROUTES,
  ...routesOf('inbox'),
  ...FEED_ROUTES,
  ...routesOf('tokens', {}, { revokeToken: ({ server }) => server.streams.recheck() }),
  ...routesOf('webhooks'),
  ...ADMIN_ROUTES,
  ...AI_SDK_ROUTES,
  ...AG_UI_ROUTES,
  ...A2A_ROUTES,
  ...MCP_ROUTES,
  ...PAGE_ROUTES,
]
