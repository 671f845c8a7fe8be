// Agents that `legate mcp` and a server offer to others.
import { agent } from 'legate'
import { scriptedModel } from 'legate/testing'

export const clerk = agent({ name: 'clerk', instructions: 'You greet.', model: scriptedModel(() => 'Good morning.') })
