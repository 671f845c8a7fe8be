export { type A2aAgentOptions, a2aAgent } from './remote/a2a-agent.ts'
