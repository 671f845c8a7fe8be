// The route table. Router, validation, OpenAPI, the reference page and the attack matrix are made from it.

import { PAGE_ROUTES } from '../../page/routes.ts'
import { A2A_ROUTES } from '../protocols/a2a.ts'
import { AG_UI_ROUTES } from '../protocols/ag-ui.ts'
import { MCP_ROUTES } from '../protocols/mcp.ts'
import type { Route } from '../table/route.ts'
import { ADMIN_ROUTES, OWNER_ROUTES } from './admin.ts'
import { AGENT_ROUTES } from './agents.ts'
import { AI_SDK_ROUTES } from './ai-sdk.ts'
import { CONVERSATION_ROUTES } from './conversations.ts'
import { FEED_ROUTES } from './feed.ts'
import { HISTORY_ROUTES } from './history.ts'
import { INBOX_ROUTES } from './inbox.ts'
import { METADATA_ROUTES } from './login.ts'
import { NODE_ROUTES } from './nodes.ts'

import { RUN_ROUTES } from './runs.ts'
import { SERVER_ROUTES } from './server.ts'
import { TOKEN_ROUTES, WEBHOOK_ROUTES } from './tokens.ts'
import { TREE_ROUTES } from './trees.ts'

/** Every route of the server. A route that is not here does not exist. */
export const TABLE: readonly Route[] = [
  ...SERVER_ROUTES,
  ...METADATA_ROUTES,
  ...AGENT_ROUTES,
  ...RUN_ROUTES,
  ...CONVERSATION_ROUTES,
  ...HISTORY_ROUTES,
  ...TREE_ROUTES,
  ...NODE_ROUTES,
  ...INBOX_ROUTES,
  ...FEED_ROUTES,
  ...TOKEN_ROUTES,
  ...WEBHOOK_ROUTES,
  ...OWNER_ROUTES,
  ...ADMIN_ROUTES,
  ...AI_SDK_ROUTES,
  ...AG_UI_ROUTES,
  ...A2A_ROUTES,
  ...MCP_ROUTES,
  ...PAGE_ROUTES,
]
