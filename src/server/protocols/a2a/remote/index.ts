export { type A2aAgentOptions, a2aAgent } from './a2a-agent.ts'
