from .charts import PICTURES as PICTURES
from .charts import Picture as Picture
from .charts import picture_lines as picture_lines
from .charts import picture_of as picture_of
from .roofline_chart import limit_text as limit_text
