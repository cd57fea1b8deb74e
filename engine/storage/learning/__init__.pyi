from .forecast import LearningForecast as LearningForecast
from .forecast import learning_forecast as learning_forecast
from .hardware_analyzer import BenchmarkResults as BenchmarkResults
from .hardware_analyzer import HardwareAnalyzerV2 as HardwareAnalyzerV2
from .hardware_analyzer import HardwareProfile as HardwareProfile
from .storage_estimator import LevelEstimate as LevelEstimate
from .storage_estimator import StorageBreakdown as StorageBreakdown
from .storage_estimator import StorageEstimator as StorageEstimator
