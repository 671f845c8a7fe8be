// Agents as tools of MCP: name, description, and the agent's own schemas.

import type { AgentInfo } from '../../../doors/rows.ts'
import { InputError, type JsonSchema } from '../../../index.ts'
import type { McpArguments, McpCall, McpTool } from './offer.ts'
import { attachRun, isObjectSchema, type Peer, runIn, shapeOf } from './peer.ts'
import { hasTasks, needTasks } from './read.ts'

const WAIT_MS = 2_000
const WAIT_WITHOUT_TASKS_MS = 50_000

/** The agents that a caller may start, as tools in the order of their names. */
export async function agentTools(peer: Peer): Promise<McpTool[]> {
  const agents = peer.runtime.may('start') ? await peer.runtime.agents() : []
  const taken = new Set<string>()
  return agents.map((agent) => agentTool(peer, agent, toolName(agent.name, taken)))
}

/** Names of MCP have letters, digits, `_`, `-` and `.`. */
function toolName(agent: string, taken: Set<string>): string {
  const plain = agent.replaceAll(/[^\w.-]/g, '_')
  let name = plain
  for (let count = 2; taken.has(name); count++) name = `${plain}_${count}`
  taken.add(name)
  return name
}

function agentTool(peer: Peer, agent: AgentInfo, name: string): McpTool {
  const { name: title, description, input, output } = agent
  return {
    name,
    ...(title === name ? {} : { title }),
    description: description === '' ? `The agent ${title}.` : description,
    inputSchema: inputSchema(input),
    ...(output === null ? {} : { outputSchema: isObjectSchema(output) ? output : wrapped('output', output) }),
    call: (args, call) => callAgent(peer, agent, args, call),
  }
}

const MESSAGE: JsonSchema = {
  type: 'object',
  properties: {
    message: { type: 'string', description: 'What to say to the agent.' },
    session_id: {
      type: 'string',
      description:
        'Goes on in a conversation: the session_id of an earlier result, or a name of your own, by which it begins and goes on.',
    },
  },
  required: ['message'],
}

function inputSchema(input: JsonSchema | null): JsonSchema {
  if (input === null) return MESSAGE
  return isObjectSchema(input) ? input : wrapped('input', input)
}

/** Arguments and structured results of MCP are objects. */
function wrapped(key: string, schema: JsonSchema): JsonSchema {
  return { type: 'object', properties: { [key]: schema }, required: [key] } as JsonSchema
}

async function callAgent(peer: Peer, agent: AgentInfo, args: McpArguments, call: McpCall): Promise<object> {
  const { waitMs, needsTasks = false } = { waitMs: peer.options.waitMs, ...peer.options.agents?.[agent.name] }
  if (needsTasks) needTasks(call.client)
  const usual = hasTasks(call.client) ? WAIT_MS : WAIT_WITHOUT_TASKS_MS
  const waiting = { call, shape: shapeOf(agent), waitMs: needsTasks ? 0 : (waitMs ?? usual), isOwn: true }
  const known = runIn(call.state)
  if (known === undefined) return peer.wait(await begin(peer, agent, args), waiting)
  return peer.goOn(await attachRun(peer, known), waiting)
}

function begin(peer: Peer, { name, input }: AgentInfo, args: McpArguments) {
  if (input !== null) return peer.start(name, isObjectSchema(input) ? args : args['input'], undefined)
  const { message, session_id: session } = args
  if (typeof message !== 'string') throw new InputError('invalid_input', '"message" must be a text.')
  if (session !== undefined && (typeof session !== 'string' || session === '' || session.length > 500)) {
    throw new InputError('invalid_input', '"session_id" must be the session_id of an earlier result.')
  }
  return peer.start(name, message, session)
}
