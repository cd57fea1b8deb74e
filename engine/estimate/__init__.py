"""Work times hardware: memory, time, speed, power, cost, and how sure each of them is."""
