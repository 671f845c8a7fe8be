import { crashWorker } from 'legate/testing'
import { asker, driveLead, lead } from './lead.ts'
import { QUICK } from './parts.ts'

await crashWorker({ options: { agents: [lead, asker], engine: QUICK }, drive: driveLead })
